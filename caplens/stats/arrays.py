"""Checks and small conversions that every statistic starts with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caplens.arrays import Floats, Ints
from caplens.errors import InputError

Groups = Sequence[object] | NDArray[np.generic] | None


def paired(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two vectors of equal length without gaps."""
    return _alike(x, y, 1, "two vectors of one length")


def matrices(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two tables of systems by inputs of one shape, without gaps."""
    return _alike(x, y, 2, "two tables (systems by inputs) of one shape")


def _alike(x: ArrayLike, y: ArrayLike, dimensions: int, needed: str) -> tuple[Floats, Floats]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != dimensions or first.shape != second.shape:
        raise InputError(f"{needed} are needed, not shapes {first.shape} and {second.shape}.")
    if np.isnan(first).any() or np.isnan(second).any():
        raise InputError("there are gaps (NaN) in the data; leave those rows out on both sides.")
    return first, second


def group_numbers(groups: Groups, size: int) -> tuple[Ints, int]:
    """Group of each row as 0, 1, …, and how many there are; without groups each row is its own."""
    if groups is None:
        return np.arange(size), size
    if len(groups) != size:
        raise InputError(f"there are {len(groups)} groups for {size} rows; give one a row.")
    numbers: dict[object, int] = {}
    found = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)
    return found, len(numbers)


def sum_by_group(statistics: Floats, groups: Groups) -> Floats:
    """The rows of a table of statistics added up within each group."""
    group, count = group_numbers(groups, len(statistics))
    return np.stack([np.bincount(group, column, count) for column in statistics.T], axis=1)


def dense_ranks(values: Floats) -> tuple[Ints, int]:
    """Each value's place among the distinct values, and how many are distinct."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks, len(distinct)

"""Input checks and conversions shared by the statistics."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caplens.arrays import Floats, Ints
from caplens.errors import InputError

Groups = Sequence[object] | NDArray[np.generic] | None


def paired(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two vectors as arrays, checked to have equal length and no missing values."""
    return _check_pair(x, y, 1, "two vectors of equal length")


def matrices(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two tables of systems by inputs as arrays, checked to have equal shape and no missing values."""
    return _check_pair(x, y, 2, "two tables (systems by inputs) of equal shape")


def _check_pair(x: ArrayLike, y: ArrayLike, dimensions: int, expected: str) -> tuple[Floats, Floats]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != dimensions or first.shape != second.shape:
        raise InputError(f"{expected} are needed, not shapes {first.shape} and {second.shape}.")
    if np.isnan(first).any() or np.isnan(second).any():
        raise InputError("the data has missing values (NaN); leave out those rows on both sides.")
    return first, second


def group_numbers(groups: Groups, size: int) -> tuple[Ints, int]:
    """The group of each row as a number 0, 1, …, and the number of groups. If `groups` is None, each row is its own group."""
    if groups is None:
        return np.arange(size), size
    if len(groups) != size:
        raise InputError(f"there are {len(groups)} groups for {size} rows; pass one group for each row.")
    numbers: dict[object, int] = {}
    group_of_row = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)
    return group_of_row, len(numbers)


def sum_by_group(statistics: Floats, groups: Groups) -> Floats:
    """The sum of the rows of a table of statistics within each group."""
    group, count = group_numbers(groups, len(statistics))
    return np.stack([np.bincount(group, column, count) for column in statistics.T], axis=1)


def dense_ranks(values: Floats) -> tuple[Ints, int]:
    """The rank of each value among the distinct values, from 0, and the number of distinct values."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks, len(distinct)

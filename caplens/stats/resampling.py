"""Confidence intervals by resampling images: rows about one image are drawn together, because they are not independent."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.progress import track
from caplens.stats.arrays import Groups, group_numbers, paired, sum_by_group
from caplens.stats.correlation import Coefficient

_BLOCK_CELLS = 1_000_000


def draws_of_groups(groups: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample has each group, a block of resamples at a time. The same seed gives the same draws."""
    if resamples < 1:
        raise InputError(f"at least one resample is needed, not {resamples}.")
    if groups < 1:
        raise InputError("there are no rows to resample.")
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // groups)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        chosen = generator.integers(0, groups, (size, groups)) + np.arange(size)[:, None] * groups
        yield np.bincount(chosen.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)


def bootstrap(
    coefficient: Coefficient, x: ArrayLike, y: ArrayLike, groups: Groups = None, resamples: int = 1000, seed: int = 0
) -> Floats:
    """The coefficient on each resample of the groups."""
    first, second = paired(x, y)
    group, count = group_numbers(groups, len(first))
    draws = draws_of_groups(count, resamples, seed)
    return np.concatenate([coefficient.resampled(first, second, group, drawn) for drawn in draws])


def bootstrap_pooled(
    statistics: Floats, pool: Callable[[Floats], Floats], groups: Groups = None, resamples: int = 1000, seed: int = 0
) -> Floats:
    """A corpus score on each resample of the groups, from additive statistics of each row."""
    sums = sum_by_group(statistics, groups)
    draws = track(draws_of_groups(len(sums), resamples, seed), "resampling", resamples, size=len)
    return np.concatenate([pool(drawn @ sums) for drawn in draws])


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """The middle `level` of resampled values (percentile interval). Resamples without a value are left out."""
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not at {level}.")
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

"""Bootstrap confidence intervals. Rows of the same image are drawn together, because they are not independent."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.progress import track
from caplens.stats.arrays import Groups, group_numbers, paired, sum_by_group
from caplens.stats.correlation import Coefficient

_BLOCK_CELLS = 1_000_000


RESAMPLES = 1000
"""How many resamples a bootstrap or test has, if nobody says."""


def draws_of_groups(groups: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Blocks of resamples: a row for each resample and a column for each group, how often the group was drawn.

    The same seed gives the same draws.
    """
    for name, value in (("resamples", resamples), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} is a whole number, not {value!r}.")
    if resamples < 1:
        raise InputError(f"at least one resample is needed, not {resamples}.")
    if groups < 1:
        raise InputError("there are no rows to resample.")
    rng = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_CELLS // groups)
    for start in range(0, resamples, block_size):
        size = min(block_size, resamples - start)
        cells = rng.integers(0, groups, (size, groups)) + np.arange(size)[:, None] * groups
        yield np.bincount(cells.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)


def bootstrap(
    coefficient: Coefficient, x: ArrayLike, y: ArrayLike, groups: Groups = None, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """A correlation coefficient on each resample of the groups.

    Parameters
    ----------
    coefficient
        The correlation coefficient.
    x, y
        Two vectors of equal length without missing values.
    groups
        The group of each row, such as its image. Rows of a group are drawn together. By default each row is its own group.
    resamples
        The number of resamples.
    seed
        The seed of the random draws.

    Returns
    -------
    array
        One value for each resample; NaN where the coefficient is undefined.

    Raises
    ------
    InputError
        If there are no rows, fewer than one resample, missing values, or not one group for each row.
    """
    first, second = paired(x, y)
    group, count = group_numbers(groups, len(first))
    blocks = draws_of_groups(count, resamples, seed)
    return np.concatenate([coefficient.resampled(first, second, group, draws) for draws in blocks])


def bootstrap_pooled(
    statistics: Floats, pool: Callable[[Floats], Floats], groups: Groups = None, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """A corpus score on each resample of the groups.

    Parameters
    ----------
    statistics
        A row of additive statistics for each sample, such as n-gram matches and lengths.
    pool
        Computes corpus scores from summed statistics. The last axis holds the statistics.
    groups, resamples, seed
        As for `bootstrap`.

    Returns
    -------
    array
        The score of each resample.

    Raises
    ------
    InputError
        If there are no rows, fewer than one resample, or not one group for each row.
    """
    sums = sum_by_group(statistics, groups)
    blocks = track(draws_of_groups(len(sums), resamples, seed), "resampling", resamples, size=len)
    return np.concatenate([pool(draws @ sums) for draws in blocks])


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """The percentile confidence interval of resampled values.

    Parameters
    ----------
    values
        One value for each resample; NaN values are left out.
    level
        The confidence level.

    Returns
    -------
    tuple of float
        The lower and upper bound; NaN if there are no values.

    Raises
    ------
    InputError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"a confidence level must be between 0 and 1, not {level}.")
    valid = values[~np.isnan(values)]
    if not len(valid):
        return float("nan"), float("nan")
    low, high = np.quantile(valid, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

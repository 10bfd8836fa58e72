"""Correlation between a metric and human ratings: Kendall's tau-b and tau-c, Spearman, Pearson.

Each coefficient is a function of two vectors. It can also be computed on all resamples of a bootstrap at once, from a table of
how often each group of rows was drawn. That takes a few passes over arrays instead of one call for each resample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # submodules load on first use, which saves every command half a second
from numpy.typing import ArrayLike

from caplens.arrays import Floats, Ints
from caplens.errors import InputError
from caplens.stats.arrays import dense_ranks, paired

_MOST_LEVELS = 32
_BLOCK_CELLS = 250_000
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Coefficient:
    """A correlation coefficient. Call it with two vectors; it returns NaN where it is undefined, as when one vector is constant.

    Attributes
    ----------
    name
        A key of `COEFFICIENTS`.
    compute
        The coefficient of two vectors that are not constant.
    of_resamples
        The coefficient of each resample, for (x, y, group of each row, draws); see `resampled`.

    Examples
    --------
    >>> round(TAU_B([1, 2, 3, 4], [1, 3, 2, 4]), 3)
    0.667
    """

    name: str
    compute: Callable[[Floats, Floats], float]
    of_resamples: Callable[[Floats, Floats, Ints, Floats], Floats]

    def __call__(self, x: ArrayLike, y: ArrayLike) -> float:
        first, second = paired(x, y)
        if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
            return float("nan")
        return float(self.compute(first, second))

    def resampled(self, x: ArrayLike, y: ArrayLike, group: Ints, draws: Floats) -> Floats:
        """The coefficient of each resample of groups of rows.

        Parameters
        ----------
        x, y
            Two vectors of equal length.
        group
            The group of each row: 0, 1, ….
        draws
            A row for each resample and a column for each group: how often the group was drawn.

        Returns
        -------
        array
            One value for each resample; NaN where the coefficient is undefined.
        """
        first, second = paired(x, y)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.of_resamples(first, second, group, draws)


def _in_blocks(compute: Callable[[Floats], Floats], draws: Floats, cells: int) -> Floats:
    """Apply `compute` to blocks of resamples, to limit peak memory; each resample needs an array of `cells` numbers."""
    block_size = max(1, _BLOCK_CELLS // cells)
    return np.concatenate([compute(draws[start : start + block_size]) for start in range(0, len(draws), block_size)])


class _PairCounts(NamedTuple):
    """The terms of Kendall's coefficients, one value for each resample."""

    concordant_minus_discordant: Floats
    size: Floats
    tied_x: Floats
    tied_y: Floats
    distinct_x: Floats
    distinct_y: Floats


class _PairCounter:
    """Counts pairs of rows in a contingency table of the ranks of x by the levels of y. There should be few levels."""

    def __init__(self, x: Floats, y: Floats, group: Ints) -> None:
        rank, self._ranks = dense_ranks(x)
        level, self._levels = dense_ranks(y)
        self.cells = self._ranks * self._levels
        self._cell_by_group = scipy.sparse.csr_array((np.ones(len(x)), (rank * self._levels + level, group)))
        self._cell_by_group.resize((self.cells, int(group.max()) + 1))
        levels = np.arange(self._levels)
        self._sign = np.sign(levels[:, None] - levels[None, :]).astype(np.float64)

    def __call__(self, draws: Floats) -> _PairCounts:
        table = (self._cell_by_group @ np.ascontiguousarray(draws.T)).reshape(self._ranks, self._levels, len(draws))
        # A row is concordant with rows of lower rank and lower level, and discordant with rows of lower rank and higher level.
        # Rows of the same rank cancel out, so the cumulative sum may include them.
        balance = self._sign @ np.cumsum(table, axis=0)
        counts_x, counts_y = table.sum(axis=1), table.sum(axis=0)
        return _PairCounts(
            np.einsum("ilr,ilr->r", table, balance),
            counts_y.sum(axis=0),
            (counts_x * (counts_x - 1)).sum(axis=0) / 2,
            (counts_y * (counts_y - 1)).sum(axis=0) / 2,
            np.count_nonzero(counts_x, axis=0).astype(np.float64),
            np.count_nonzero(counts_y, axis=0).astype(np.float64),
        )


def _tau_b(pairs: _PairCounts) -> Floats:
    total = pairs.size * (pairs.size - 1) / 2
    tau: Floats = pairs.concordant_minus_discordant / np.sqrt(total - pairs.tied_x) / np.sqrt(total - pairs.tied_y)
    return tau


def _tau_c(pairs: _PairCounts) -> Floats:
    """Stuart's tau-c, scaled by the number of distinct values of the vector that has fewer of them."""
    classes = np.minimum(pairs.distinct_x, pairs.distinct_y)
    tau: Floats = 2 * pairs.concordant_minus_discordant / (pairs.size**2 * (classes - 1) / classes)
    return tau


def _kendall(variant: str, formula: Callable[[_PairCounts], Floats]) -> Coefficient:
    def compute(x: Floats, y: Floats) -> float:
        return float(scipy.stats.kendalltau(x, y, variant=variant).statistic)

    def of_resamples(x: Floats, y: Floats, group: Ints, draws: Floats) -> Floats:
        levels_x, levels_y = len(np.unique(x)), len(np.unique(y))
        if min(levels_x, levels_y) > _MOST_LEVELS:
            # With many levels on both sides the table of counts costs more than sorting each resample.
            return np.array([_on_repeated_rows(compute, x, y, counts[group]) for counts in draws])
        counter = _PairCounter(y, x, group) if levels_x < levels_y else _PairCounter(x, y, group)
        return _in_blocks(lambda block: formula(counter(block)), draws, counter.cells)

    return Coefficient(f"tau-{variant}", compute, of_resamples)


def _on_repeated_rows(compute: Callable[[Floats, Floats], float], x: Floats, y: Floats, counts: Floats) -> float:
    """The coefficient of one resample, in which row i occurs `counts[i]` times."""
    resampled_x, resampled_y = (np.repeat(values, counts.astype(np.int64)) for values in (x, y))
    return float("nan") if np.ptp(resampled_x) == 0 or np.ptp(resampled_y) == 0 else compute(resampled_x, resampled_y)


def _pearson_of_resamples(x: Floats, y: Floats, group: Ints, draws: Floats) -> Floats:
    x, y = x - x.mean(), y - y.mean()
    # Scores near the largest number there is have no coefficient.
    with np.errstate(over="ignore", invalid="ignore"):
        products = (np.ones(len(x)), x, y, x * x, y * y, x * y)
        sums = np.stack([np.bincount(group, values, draws.shape[1]) for values in products])
        return _pearson(*(sums @ draws.T))


def _spearman_of_resamples(x: Floats, y: Floats, group: Ints, draws: Floats) -> Floats:
    def compute(block: Floats) -> Floats:
        counts = block[:, group]
        rank_x, rank_y = _midranks(x, counts), _midranks(y, counts)
        weighted_x, weighted_y = counts * rank_x, counts * rank_y
        products = (counts, weighted_x, weighted_y, weighted_x * rank_x, weighted_y * rank_y, weighted_x * rank_y)
        return _pearson(*(values.sum(axis=1) for values in products))

    return _in_blocks(compute, draws, len(x))


def _midranks(values: Floats, counts: Floats) -> Floats:
    """The rank of each row in each resample, centred on 0; tied rows get the mean of their ranks."""
    rank, distinct = dense_ranks(values)
    order = np.argsort(rank, kind="stable")
    starts = np.searchsorted(rank[order], np.arange(distinct))
    tied = np.add.reduceat(counts[:, order], starts, axis=1)
    midrank = np.cumsum(tied, axis=1) - tied / 2 - tied.sum(axis=1, keepdims=True) / 2
    midranks: Floats = midrank[:, rank]
    return midranks


def _pearson(size: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats) -> Floats:
    """Pearson's correlation of each resample, from its sums."""
    covariance = xy / size - x * y / size**2
    variance_x, variance_y = xx / size - (x / size) ** 2, yy / size - (y / size) ** 2
    # The variance of a constant is not exactly 0, because of rounding.
    constant = (variance_x <= _ROUNDING * xx / size) | (variance_y <= _ROUNDING * yy / size)
    return np.where(constant, np.nan, covariance / np.sqrt(variance_x * variance_y))


TAU_B = _kendall("b", _tau_b)
TAU_C = _kendall("c", _tau_c)
SPEARMAN = Coefficient("spearman", lambda x, y: float(scipy.stats.spearmanr(x, y).statistic), _spearman_of_resamples)
PEARSON = Coefficient("pearson", lambda x, y: float(scipy.stats.pearsonr(x, y).statistic), _pearson_of_resamples)
COEFFICIENTS = {coefficient.name: coefficient for coefficient in (TAU_B, TAU_C, SPEARMAN, PEARSON)}


def get_coefficient(name: str) -> Coefficient:
    """Look up a correlation coefficient by name.

    Parameters
    ----------
    name
        tau-b, tau-c, spearman or pearson.

    Returns
    -------
    Coefficient
        A function of two vectors.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    try:
        return COEFFICIENTS[name]
    except KeyError:
        raise InputError(f"unknown coefficient {name!r}; choose from: {', '.join(COEFFICIENTS)}.") from None

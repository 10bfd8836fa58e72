"""Correlation between a metric and people: Kendall's tau-b and tau-c, Spearman, Pearson.

Each coefficient is a function of two vectors. It also works on resamples of groups of rows, given as a table of how often
each group was drawn: a bootstrap then costs a few passes over arrays instead of one call for each resample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used, which spares every command half a second
from numpy.typing import ArrayLike

from caplens.arrays import Floats, Ints
from caplens.errors import InputError
from caplens.stats.arrays import dense_ranks, paired

_MOST_LEVELS = 32
_BLOCK_CELLS = 250_000
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Coefficient:
    """A correlation coefficient. NaN where it is not defined, as when one side is constant."""

    name: str
    compute: Callable[[Floats, Floats], float]
    of_resamples: Callable[[Floats, Floats, Ints, Floats], Floats]

    def __call__(self, x: ArrayLike, y: ArrayLike) -> float:
        first, second = paired(x, y)
        if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
            return float("nan")
        return float(self.compute(first, second))

    def resampled(self, x: ArrayLike, y: ArrayLike, group: Ints, draws: Floats) -> Floats:
        """The coefficient of each resample: row r of `draws` says how often resample r has each group of rows."""
        first, second = paired(x, y)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.of_resamples(first, second, group, draws)


def _in_blocks(compute: Callable[[Floats], Floats], draws: Floats, cells: int) -> Floats:
    """Resamples a few at a time, so that the `cells` numbers each of them needs do not fill the memory."""
    block = max(1, _BLOCK_CELLS // cells)
    return np.concatenate([compute(draws[start : start + block]) for start in range(0, len(draws), block)])


class _PairCounts(NamedTuple):
    """What Kendall's coefficients are made of, for each resample."""

    concordant_minus_discordant: Floats
    size: Floats
    tied_x: Floats
    tied_y: Floats
    distinct_x: Floats
    distinct_y: Floats


class _PairCounter:
    """Counts pairs in a table of ranks of x by levels of y, which should be few."""

    def __init__(self, x: Floats, y: Floats, group: Ints) -> None:
        rank, self._ranks = dense_ranks(x)
        level, self._levels = dense_ranks(y)
        self.cells = self._ranks * self._levels
        self._rows_in = scipy.sparse.csr_array((np.ones(len(x)), (rank * self._levels + level, group)))
        self._rows_in.resize((self.cells, int(group.max()) + 1))
        levels = np.arange(self._levels)
        self._side = np.sign(levels[:, None] - levels[None, :]).astype(np.float64)

    def __call__(self, draws: Floats) -> _PairCounts:
        table = (self._rows_in @ np.ascontiguousarray(draws.T)).reshape(self._ranks, self._levels, len(draws))
        # A row is rightly above those of lower rank and level, and wrongly above those of lower rank and higher level.
        # Rows of its own rank cancel out, so the running total may include them.
        balance = self._side @ np.cumsum(table, axis=0)
        of_x, of_y = table.sum(axis=1), table.sum(axis=0)
        return _PairCounts(
            np.einsum("ilr,ilr->r", table, balance),
            of_y.sum(axis=0),
            (of_x * (of_x - 1)).sum(axis=0) / 2,
            (of_y * (of_y - 1)).sum(axis=0) / 2,
            np.count_nonzero(of_x, axis=0).astype(np.float64),
            np.count_nonzero(of_y, axis=0).astype(np.float64),
        )


def _tau_b(pairs: _PairCounts) -> Floats:
    every = pairs.size * (pairs.size - 1) / 2
    tau: Floats = pairs.concordant_minus_discordant / np.sqrt(every - pairs.tied_x) / np.sqrt(every - pairs.tied_y)
    return tau


def _tau_c(pairs: _PairCounts) -> Floats:
    """Stuart's tau-c: the classes of the side with fewer of them set the largest possible value."""
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
            return np.array([_on_rows(compute, x, y, drawn[group]) for drawn in draws])
        counter = _PairCounter(y, x, group) if levels_x < levels_y else _PairCounter(x, y, group)
        return _in_blocks(lambda drawn: formula(counter(drawn)), draws, counter.cells)

    return Coefficient(f"tau-{variant}", compute, of_resamples)


def _on_rows(compute: Callable[[Floats, Floats], float], x: Floats, y: Floats, times: Floats) -> float:
    drawn_x, drawn_y = (np.repeat(values, times.astype(np.int64)) for values in (x, y))
    return float("nan") if np.ptp(drawn_x) == 0 or np.ptp(drawn_y) == 0 else compute(drawn_x, drawn_y)


def _pearson_of_resamples(x: Floats, y: Floats, group: Ints, draws: Floats) -> Floats:
    x, y = x - x.mean(), y - y.mean()
    products = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    sums = np.stack([np.bincount(group, values, draws.shape[1]) for values in products])
    return _pearson(*(sums @ draws.T))


def _spearman_of_resamples(x: Floats, y: Floats, group: Ints, draws: Floats) -> Floats:
    def compute(drawn: Floats) -> Floats:
        rows = drawn[:, group]
        rank_x, rank_y = _midranks(x, rows), _midranks(y, rows)
        weighted_x, weighted_y = rows * rank_x, rows * rank_y
        products = (rows, weighted_x, weighted_y, weighted_x * rank_x, weighted_y * rank_y, weighted_x * rank_y)
        return _pearson(*(values.sum(axis=1) for values in products))

    return _in_blocks(compute, draws, len(x))


def _midranks(values: Floats, rows: Floats) -> Floats:
    """The rank of each row in each resample, ties sharing the mean of their ranks, counted from the middle."""
    rank, ranks = dense_ranks(values)
    order = np.argsort(rank, kind="stable")
    starts = np.searchsorted(rank[order], np.arange(ranks))
    drawn = np.add.reduceat(rows[:, order], starts, axis=1)
    middle = np.cumsum(drawn, axis=1) - drawn / 2 - drawn.sum(axis=1, keepdims=True) / 2
    ranked: Floats = middle[:, rank]
    return ranked


def _pearson(size: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats) -> Floats:
    """The correlation of each resample from its sums."""
    covariance = xy / size - x * y / size**2
    variance_x, variance_y = xx / size - (x / size) ** 2, yy / size - (y / size) ** 2
    # What is left of a constant after taking off its mean is rounding.
    constant = (variance_x <= _ROUNDING * xx / size) | (variance_y <= _ROUNDING * yy / size)
    return np.where(constant, np.nan, covariance / np.sqrt(variance_x * variance_y))


TAU_B = _kendall("b", _tau_b)
TAU_C = _kendall("c", _tau_c)
SPEARMAN = Coefficient("spearman", lambda x, y: float(scipy.stats.spearmanr(x, y).statistic), _spearman_of_resamples)
PEARSON = Coefficient("pearson", lambda x, y: float(scipy.stats.pearsonr(x, y).statistic), _pearson_of_resamples)
COEFFICIENTS = {coefficient.name: coefficient for coefficient in (TAU_B, TAU_C, SPEARMAN, PEARSON)}


def get_coefficient(name: str) -> Coefficient:
    try:
        return COEFFICIENTS[name]
    except KeyError:
        raise InputError(f"unknown coefficient {name!r}; choose from: {', '.join(COEFFICIENTS)}.") from None

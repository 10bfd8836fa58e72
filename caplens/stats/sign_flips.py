"""Permutation tests of many pairs of systems at once, with as many permutations as each needs.

Under the null hypothesis two systems are exchangeable, so their statistics are swapped for random groups, such as images. All
pairs share the swaps, and the sums over groups of all pairs are one product of matrices. With few groups all swaps are tried,
and p is exact. Else there are at least 10,000, and more where p could still lie on either side of a corrected level.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import Groups, sum_by_group
from caplens.stats.significance import Pool

LEVEL = 0.05
LEAST, MOST = 10_000, 160_000
"""Permutations of a test."""
_MOST_EXACT = 16
"""Groups of which all swaps are tried."""
_SURE = 3.3
"""Standard errors: p is on this side of a level with a probability of 99.9%."""
_BLOCK_CELLS = 4_000_000
_ROUNDING = 1e-9


class SystemPair(NamedTuple):
    """Additive statistics of two systems, a row for each sample, and what computes corpus scores from their sums."""

    first: Floats
    second: Floats
    pool: Pool


def exchange_systems(pairs: Sequence[SystemPair], groups: Groups = None, family: int = 1, seed: int = 0) -> Floats:
    """Paired permutation tests: two-sided p-values for the difference of two systems' corpus scores, for each pair.

    Parameters
    ----------
    pairs
        The pairs, all about the same samples in the same order.
    groups
        The group of each sample; samples of a group are swapped together. By default each is its own group.
    family
        How many tests are corrected together: p-values are placed against 0.05 divided by 1 to `family`.
    seed
        The seed of the random swaps.

    Returns
    -------
    array
        The p-value of each pair, not corrected; NaN where a score is undefined.

    Raises
    ------
    InputError
        If two systems do not have the same samples.
    """
    if any(pair.first.shape != pair.second.shape for pair in pairs):
        raise InputError("paired tests need the same samples for both systems.")
    tests = [_Test(pair, groups) for pair in pairs]
    if not tests:
        return np.zeros(0)
    count = len(tests[0].difference)
    if count <= _MOST_EXACT:
        _run(tests, _all_swaps(count))
        return np.array([test.extreme / test.count if test.count else np.nan for test in tests])
    levels = LEVEL / np.arange(1, family + 1)
    rng = np.random.default_rng(seed)
    undecided, size = tests, LEAST
    while undecided:
        _run(undecided, _random_swaps(count, size, rng))
        undecided = [test for test in undecided if test.count < MOST and test.is_near(levels)]
        # Twice as many permutations in all.
        size = max((test.count for test in undecided), default=0)
    return np.array([(test.extreme + 1) / (test.count + 1) if test.count else np.nan for test in tests])


def smallest_p(groups: int) -> float:
    """The smallest p-value that a test with so many groups can have."""
    return 2 / 2**groups if groups <= _MOST_EXACT else 1 / (LEAST + 1)


class _Test:
    """A pair, and how often a permuted difference was at least as large as the observed one."""

    def __init__(self, pair: SystemPair, groups: Groups) -> None:
        first, second = sum_by_group(pair.first, groups), sum_by_group(pair.second, groups)
        self.difference = second - first
        self._pool, self._first, self._second = pair.pool, first.sum(axis=0), second.sum(axis=0)
        scores = [float(pair.pool(total)) for total in (self._first, self._second)]
        self._observed = abs(scores[0] - scores[1]) - _ROUNDING * max(1.0, *map(abs, scores))
        self.extreme = self.count = 0

    def take(self, shifts: Floats) -> None:
        """Count permutations by what they add to the sums of the first system."""
        differences = np.abs(self._pool(self._first + shifts) - self._pool(self._second - shifts))
        valid = differences[~np.isnan(differences)]
        if not np.isnan(self._observed):
            self.extreme += int(np.count_nonzero(valid >= self._observed))
            self.count += len(valid)

    def is_near(self, levels: Floats) -> bool:
        """Whether the p-value could lie on either side of a level (Wilson's interval)."""
        share, spread = self.extreme / self.count, _SURE**2 / self.count
        middle = (share + spread / 2) / (1 + spread)
        half = np.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
        return bool((np.abs(levels - middle) <= half).any())


def _run(tests: Sequence[_Test], blocks: Iterator[np.ndarray]) -> None:
    differences = np.concatenate([test.difference for test in tests], axis=1)
    stops = np.cumsum([test.difference.shape[1] for test in tests])[:-1]
    for swaps in blocks:
        for test, shifts in zip(tests, np.split(swaps @ differences, stops, axis=1), strict=True):
            if test.count < MOST:
                test.take(shifts)


def _all_swaps(groups: int) -> Iterator[np.ndarray]:
    """All swaps but for those that exchange the two systems as a whole, which make the same difference."""
    numbers = np.arange(2 ** max(0, groups - 1), dtype=np.int64)
    yield ((numbers[:, None] >> np.arange(groups)) & 1).astype(np.float64)


def _random_swaps(groups: int, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    size = max(1, _BLOCK_CELLS // groups)
    for start in range(0, count, size):
        rows = min(size, count - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(rows * -(-groups // 8)), dtype=np.uint8).reshape(rows, -1), axis=1)
        yield bits[:, :groups].astype(np.float64)

"""Is one metric, or one system, better than another, or was it luck?

Paired tests over images by permutation and by bootstrap, Williams' test for two correlations that share a variable, and
corrections for asking several questions at once. All p-values are two-sided unless said otherwise.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import Groups, group_numbers, paired, sum_by_group
from caplens.stats.correlation import Coefficient
from caplens.stats.resampling import bootstrap, bootstrap_pooled, interval

Pool = Callable[[Floats], Floats]

_ROUNDING = 1e-9
_BLOCK_CELLS = 4_000_000


class Difference(NamedTuple):
    """How much the first is above the second, with a confidence interval where the test gives one, and its p-value."""

    value: float
    p: float
    low: float = float("nan")
    high: float = float("nan")


def bootstrapped_difference(observed: float, differences: Floats) -> Difference:
    """A difference with the interval and the p-value that its values on resamples give."""
    low, high = interval(differences)
    known = differences[~np.isnan(differences)]
    tail = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
    return Difference(observed, min(1.0, 2 * (tail + 1) / (len(known) + 1)), low, high)


def permute_metrics(
    coefficient: Coefficient,
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Groups = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Do two metrics correlate differently with people? (Deutsch et al. 2021)

    Under the null hypothesis the metrics could be exchanged, so their standardised scores are swapped for random
    images.
    """
    a, target = paired(first, human)
    b, _ = paired(second, human)
    a, b = _standardised(a), _standardised(b)
    observed = coefficient(a, target) - coefficient(b, target)
    group, count = group_numbers(groups, len(a))
    differences = [
        coefficient(np.where(rows, b, a), target) - coefficient(np.where(rows, a, b), target)
        for swaps in _swaps(count, resamples, seed)
        for rows in swaps[:, group]
    ]
    return Difference(observed, _p_value(np.array(differences), observed, exact=_is_exact(count, resamples)))


def bootstrap_metrics(
    coefficient: Coefficient,
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Groups = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The difference of two metrics' correlations with people, on the same resamples of images."""
    drawn = [bootstrap(coefficient, metric, human, groups, resamples, seed) for metric in (first, second)]
    return bootstrapped_difference(coefficient(first, human) - coefficient(second, human), drawn[0] - drawn[1])


def permute_systems(
    first: Floats, second: Floats, pool: Pool, groups: Groups = None, resamples: int = 1000, seed: int = 0
) -> Difference:
    """Do two systems differ in a corpus score? The systems' statistics are swapped for random images."""
    _check_same_rows(first, second)
    a, b = sum_by_group(first, groups), sum_by_group(second, groups)
    total_a, total_b = a.sum(axis=0), b.sum(axis=0)
    observed = float(pool(total_a) - pool(total_b))
    moved = np.concatenate([swaps @ (b - a) for swaps in _swaps(len(a), resamples, seed)])
    differences = pool(total_a + moved) - pool(total_b - moved)
    return Difference(observed, _p_value(differences, observed, exact=_is_exact(len(a), resamples)))


def bootstrap_systems(
    first: Floats, second: Floats, pool: Pool, groups: Groups = None, resamples: int = 1000, seed: int = 0
) -> Difference:
    """The difference of two systems' corpus scores, on the same resamples of images."""
    _check_same_rows(first, second)
    drawn = [bootstrap_pooled(statistics, pool, groups, resamples, seed) for statistics in (first, second)]
    return bootstrapped_difference(float(pool(first.sum(axis=0)) - pool(second.sum(axis=0))), drawn[0] - drawn[1])


def williams(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Williams' test (1959) that r12 differs from r13, where both correlations are with variable 1: t and p.

    `r23` is the correlation of the two others, and `n` the number of points.
    """
    if n < 4:
        raise InputError(f"Williams' test needs at least 4 points, not {n}.")
    if not all(-1 <= r <= 1 for r in (r12, r13, r23)):
        raise InputError("Williams' test needs correlations between -1 and 1.")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if determinant < -_ROUNDING:
        raise InputError(f"no data can have the correlations {r12}, {r13} and {r23} at once.")
    if abs(r12 - r13) < _ROUNDING:
        return 0.0, 1.0
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if spread == 0:
        return float(np.copysign(np.inf, r12 - r13)), 0.0
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / spread)
    return float(t), float(2 * scipy.stats.t.sf(abs(t), n - 3))


def bonferroni(p_values: ArrayLike) -> Floats:
    """Each p-value times the number of questions."""
    p = _p_values(p_values)
    return np.minimum(p * len(p), 1.0)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down correction: as safe as Bonferroni's and never weaker."""
    p = _p_values(p_values)
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Controls the share of false discoveries instead of the chance of any."""
    p = _p_values(p_values)
    return np.asarray(scipy.stats.false_discovery_control(p)) if len(p) else p


CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}


def get_correction(name: str) -> Callable[[ArrayLike], Floats]:
    try:
        return CORRECTIONS[name]
    except KeyError:
        raise InputError(f"unknown correction {name!r}; choose from: {', '.join(CORRECTIONS)}.") from None


def _p_values(p_values: ArrayLike) -> Floats:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1) | np.isnan(p)).any():
        raise InputError("p-values are a list of numbers between 0 and 1.")
    return p


def _standardised(values: Floats) -> Floats:
    centred: Floats = values - values.mean()
    spread = float(values.std())
    return centred / spread if spread > 0 else centred


def _check_same_rows(first: Floats, second: Floats) -> None:
    if first.shape != second.shape:
        raise InputError(f"paired tests need the same rows for both systems, not {len(first)} and {len(second)}.")


def _is_exact(groups: int, resamples: int) -> bool:
    """Are there so few groups that every way of swapping them can be tried?"""
    return groups <= 20 and 2**groups <= resamples


def _swaps(groups: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Which groups to swap in each permutation, a block of permutations at a time."""
    if _is_exact(groups, resamples):
        yield np.array(list(product([False, True], repeat=groups)))
        return
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // groups)
    for start in range(0, resamples, block):
        yield generator.random((min(block, resamples - start), groups)) < 0.5


def _p_value(differences: Floats, observed: float, *, exact: bool) -> float:
    """The share of permutations at least as extreme. Random ones get the observed one added, so that p is never 0.

    Permutations on which the statistic is not defined are left out.
    """
    known = differences[~np.isnan(differences)]
    if np.isnan(observed) or not len(known):
        return float("nan")
    extreme = np.abs(known) >= abs(observed) - 1e-12
    return float(extreme.mean()) if exact else float((extreme.sum() + 1) / (len(extreme) + 1))

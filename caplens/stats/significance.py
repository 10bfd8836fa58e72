"""Significance tests for the difference of two metrics or two systems.

Paired permutation and bootstrap tests over images, Williams' test for two correlations that share a variable, and corrections for
multiple comparisons. All p-values are two-sided.
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
from caplens.stats.resampling import RESAMPLES, bootstrap, bootstrap_pooled, interval

Pool = Callable[[Floats], Floats]

_ROUNDING = 1e-9
_BLOCK_CELLS = 4_000_000


class Difference(NamedTuple):
    """The difference of two metrics or two systems.

    Attributes
    ----------
    value
        The first minus the second.
    p
        The two-sided p-value.
    low, high
        The confidence interval; NaN where the test gives none.
    """

    value: float
    p: float
    low: float = float("nan")
    high: float = float("nan")


def bootstrapped_difference(observed: float, differences: Floats) -> Difference:
    """The confidence interval and p-value of a difference, from its values on resamples.

    Parameters
    ----------
    observed
        The difference on all rows.
    differences
        The difference on each resample; NaN values are left out.

    Returns
    -------
    Difference
        With a confidence interval.
    """
    low, high = interval(differences)
    valid = differences[~np.isnan(differences)]
    tail = min(np.count_nonzero(valid <= 0), np.count_nonzero(valid >= 0))
    return Difference(observed, min(1.0, 2 * (tail + 1) / (len(valid) + 1)), low, high)


def permute_metrics(
    coefficient: Coefficient,
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Groups = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Permutation test for the difference of two metrics' correlations with human ratings (Deutsch et al. 2021).

    Under the null hypothesis the metrics are exchangeable, so their standardized scores are swapped for random groups.

    Parameters
    ----------
    coefficient
        The correlation coefficient.
    first, second
        The scores of the two metrics for the same rows.
    human
        The human ratings of the rows.
    groups
        The group of each row, such as its image. Rows of a group are swapped together. By default each row is its own group.
    resamples
        The number of permutations.
    seed
        The seed of the random permutations.

    Returns
    -------
    Difference
        Without a confidence interval. The p-value is exact if there are so few groups that all permutations were tried.

    Raises
    ------
    InputError
        If the vectors differ in length or have missing values.
    """
    a, target = paired(first, human)
    b, _ = paired(second, human)
    a, b = _standardize(a), _standardize(b)
    observed = coefficient(a, target) - coefficient(b, target)
    group, count = group_numbers(groups, len(a))
    differences = [
        coefficient(np.where(swapped, b, a), target) - coefficient(np.where(swapped, a, b), target)
        for swaps in _swaps(count, resamples, seed)
        for swapped in swaps[:, group]
    ]
    return Difference(observed, _p_value(np.array(differences), observed, exact=_is_exact(count, resamples)))


def bootstrap_metrics(
    coefficient: Coefficient,
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Groups = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Paired bootstrap test for the difference of two metrics' correlations with human ratings.

    Parameters
    ----------
    coefficient, first, second, human
        As for `permute_metrics`.
    groups, resamples, seed
        As for `bootstrap`.

    Returns
    -------
    Difference
        With a confidence interval. Both metrics are evaluated on the same resamples.

    Raises
    ------
    InputError
        If the vectors differ in length or have missing values.
    """
    resampled = [bootstrap(coefficient, metric, human, groups, resamples, seed) for metric in (first, second)]
    return bootstrapped_difference(coefficient(first, human) - coefficient(second, human), resampled[0] - resampled[1])


def permute_systems(
    first: Floats, second: Floats, pool: Pool, groups: Groups = None, resamples: int = RESAMPLES, seed: int = 0
) -> Difference:
    """Permutation test for the difference of two systems' corpus scores. Statistics are swapped for random groups.

    Parameters
    ----------
    first, second
        The statistics of the two systems, with the same rows: one row of additive statistics for each sample.
    pool
        Computes corpus scores from summed statistics. The last axis holds the statistics.
    groups
        The group of each row, such as its image. Rows of a group are swapped together. By default each row is its own group.
    resamples
        The number of permutations.
    seed
        The seed of the random permutations.

    Returns
    -------
    Difference
        Without a confidence interval. The p-value is exact if there are so few groups that all permutations were tried.

    Raises
    ------
    InputError
        If the systems do not have the same rows.
    """
    _check_same_rows(first, second)
    a, b = sum_by_group(first, groups), sum_by_group(second, groups)
    total_a, total_b = a.sum(axis=0), b.sum(axis=0)
    observed = float(pool(total_a) - pool(total_b))
    shifts = np.concatenate([swaps @ (b - a) for swaps in _swaps(len(a), resamples, seed)])
    differences = pool(total_a + shifts) - pool(total_b - shifts)
    return Difference(observed, _p_value(differences, observed, exact=_is_exact(len(a), resamples)))


def bootstrap_systems(
    first: Floats, second: Floats, pool: Pool, groups: Groups = None, resamples: int = RESAMPLES, seed: int = 0
) -> Difference:
    """Paired bootstrap test for the difference of two systems' corpus scores.

    Parameters
    ----------
    first, second, pool
        As for `permute_systems`.
    groups, resamples, seed
        As for `bootstrap`.

    Returns
    -------
    Difference
        With a confidence interval. Both systems are evaluated on the same resamples.

    Raises
    ------
    InputError
        If the systems do not have the same rows.
    """
    _check_same_rows(first, second)
    resampled = [bootstrap_pooled(statistics, pool, groups, resamples, seed) for statistics in (first, second)]
    return bootstrapped_difference(float(pool(first.sum(axis=0)) - pool(second.sum(axis=0))), resampled[0] - resampled[1])


def williams(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Williams' test (1959) for the difference of two correlations that share a variable.

    Parameters
    ----------
    r12, r13
        The correlations to compare: of variable 1 with variables 2 and 3.
    r23
        The correlation of variables 2 and 3.
    n
        The number of points.

    Returns
    -------
    tuple of float
        The t statistic and the two-sided p-value.

    Raises
    ------
    InputError
        If there are fewer than 4 points, or no data can have these correlations.
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
    """Bonferroni correction: each p-value times the number of tests.

    Parameters
    ----------
    p_values
        The p-values of all tests.

    Returns
    -------
    array
        The corrected p-values, in the same order.
    """
    p = _check_p_values(p_values)
    return np.minimum(p * len(p), 1.0)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down correction. It controls the family-wise error rate like Bonferroni's, and is never less powerful.

    Parameters
    ----------
    p_values
        The p-values of all tests.

    Returns
    -------
    array
        The corrected p-values, in the same order.
    """
    p = _check_p_values(p_values)
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Benjamini-Hochberg correction. It controls the false discovery rate instead of the family-wise error rate.

    Parameters
    ----------
    p_values
        The p-values of all tests.

    Returns
    -------
    array
        The corrected p-values, in the same order.
    """
    p = _check_p_values(p_values)
    return np.asarray(scipy.stats.false_discovery_control(p)) if len(p) else p


CORRECTION = "holm"
"""For asking several questions at once, if nobody says which."""
CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}


def get_correction(name: str) -> Callable[[ArrayLike], Floats]:
    """Look up a correction for multiple comparisons by name.

    Parameters
    ----------
    name
        holm, bonferroni or bh.

    Returns
    -------
    callable
        A function from p-values to corrected p-values.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    try:
        return CORRECTIONS[name]
    except KeyError:
        raise InputError(f"unknown correction {name!r}; choose from: {', '.join(CORRECTIONS)}.") from None


def _check_p_values(p_values: ArrayLike) -> Floats:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1) | np.isnan(p)).any():
        raise InputError("p-values must be a list of numbers between 0 and 1.")
    return p


def _standardize(values: Floats) -> Floats:
    centred: Floats = values - values.mean()
    std = float(values.std())
    return centred / std if std > 0 else centred


def _check_same_rows(first: Floats, second: Floats) -> None:
    if first.shape != second.shape:
        raise InputError(f"paired tests need the same rows for both systems, not {len(first)} and {len(second)}.")


def _is_exact(groups: int, resamples: int) -> bool:
    """Whether there are so few groups that all permutations can be tried."""
    return groups <= 20 and 2**groups <= resamples


def _swaps(groups: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks of permutations: a row for each permutation and a column for each group, whether to swap the group."""
    if _is_exact(groups, resamples):
        yield np.array(list(product([False, True], repeat=groups)))
        return
    rng = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_CELLS // groups)
    for start in range(0, resamples, block_size):
        yield rng.random((min(block_size, resamples - start), groups)) < 0.5


def _p_value(differences: Floats, observed: float, *, exact: bool) -> float:
    """The share of permutations at least as extreme as the observed difference.

    If permutations are random, the observed one is added to them, so that p is never 0. Permutations for which the statistic is
    undefined are left out.
    """
    valid = differences[~np.isnan(differences)]
    if np.isnan(observed) or not len(valid):
        return float("nan")
    extreme = np.abs(valid) >= abs(observed) - 1e-12
    return float(extreme.mean()) if exact else float((extreme.sum() + 1) / (len(extreme) + 1))

"""How well a metric ranks systems. Tables of scores have a row for each system and a column for each input."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import matrices
from caplens.stats.correlation import Coefficient
from caplens.stats.resampling import RESAMPLES


def system_level(metric: ArrayLike, human: ArrayLike, coefficient: Coefficient) -> float:
    """The correlation between the systems' mean metric scores and mean human ratings.

    Parameters
    ----------
    metric, human
        Tables of scores and human ratings, systems by inputs, without missing values.
    coefficient
        The correlation coefficient.

    Returns
    -------
    float
        NaN where the coefficient is undefined.

    Raises
    ------
    InputError
        If the tables differ in shape or have missing values.
    """
    x, y = matrices(metric, human)
    return coefficient(x.mean(axis=1), y.mean(axis=1))


def input_level(metric: ArrayLike, human: ArrayLike, coefficient: Coefficient) -> float:
    """The correlation across systems for each input, averaged over inputs.

    Parameters
    ----------
    metric, human, coefficient
        As for `system_level`.

    Returns
    -------
    float
        The mean over the inputs for which the coefficient is defined; NaN if there are none.

    Raises
    ------
    InputError
        If the tables differ in shape or have missing values.
    """
    x, y = matrices(metric, human)
    values = np.array([coefficient(a, b) for a, b in zip(x.T, y.T, strict=True)])
    valid = values[~np.isnan(values)]
    return float(valid.mean()) if len(valid) else float("nan")


def soft_pairwise_accuracy(metric: ArrayLike, human: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Soft pairwise accuracy (Thompson et al. 2024).

    For each pair of systems, one-sided paired permutation tests on the same permutations give one p-value for the metric and one
    for the human ratings. The pair scores one minus the difference of the two.

    Parameters
    ----------
    metric, human
        Tables of scores and human ratings, systems by inputs, without missing values.
    resamples
        The number of random permutations.
    seed
        The seed of the permutations.

    Returns
    -------
    float
        The mean over all pairs of systems, from 0 to 1.

    Raises
    ------
    InputError
        If there are fewer than two systems, or the tables differ in shape or have missing values.
    """
    x, y = matrices(metric, human)
    if len(x) < 2:
        raise InputError("soft pairwise accuracy needs at least two systems.")
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (resamples, x.shape[1]))
    agreement = [
        1 - abs(_p_better(x[i] - x[j], signs) - _p_better(y[i] - y[j], signs)) for i, j in combinations(range(len(x)), 2)
    ]
    return float(np.mean(agreement))


def _p_better(difference: Floats, signs: Floats) -> float:
    """The one-sided p-value of a mean difference; ties with the observed value count half, so that p is symmetric."""
    permuted, observed = signs @ difference, difference.sum()
    equal = np.isclose(permuted, observed, rtol=1e-9, atol=1e-12)
    return float(((permuted > observed) & ~equal).mean() + equal.mean() / 2)

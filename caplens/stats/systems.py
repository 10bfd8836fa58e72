"""How well a metric ranks systems. Tables have a row for each system and a column for each input."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import matrices
from caplens.stats.correlation import Coefficient


def system_level(metric: ArrayLike, human: ArrayLike, coefficient: Coefficient) -> float:
    """The coefficient between the systems' mean scores."""
    x, y = matrices(metric, human)
    return coefficient(x.mean(axis=1), y.mean(axis=1))


def input_level(metric: ArrayLike, human: ArrayLike, coefficient: Coefficient) -> float:
    """The mean, over inputs, of the coefficient across systems; inputs where it is not defined are left out."""
    x, y = matrices(metric, human)
    values = np.array([coefficient(a, b) for a, b in zip(x.T, y.T, strict=True)])
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def soft_pairwise_accuracy(metric: ArrayLike, human: ArrayLike, resamples: int = 1000, seed: int = 0) -> float:
    """Soft pairwise accuracy (Thompson et al. 2024).

    For each pair of systems, one minus how far apart metric and people are in their confidence that the first is
    better: the p-values of one-sided paired permutation tests on the same permutations.
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
    """One-sided p-value of a mean difference at least this large; half of the equal ones count, so that p is symmetric."""
    permuted, observed = signs @ difference, difference.sum()
    equal = np.isclose(permuted, observed, rtol=1e-9, atol=1e-12)
    return float(((permuted > observed) & ~equal).mean() + equal.mean() / 2)

"""Pairwise accuracy with tie calibration (Deutsch, Foster and Freitag 2023, "Ties Matter").

Human ratings are often tied; the scores of a metric hardly ever are. So two scores that differ by at most epsilon count as a tie,
and epsilon is chosen to maximize the accuracy of the metric.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import Groups, group_numbers, paired


class PairwiseAccuracy(NamedTuple):
    """The result of `pairwise_accuracy` and `tie_calibrated_accuracy`.

    Attributes
    ----------
    accuracy
        From 0 to 1.
    epsilon
        The largest score difference that counts as a tie.
    pairs
        The number of pairs.
    human_ties
        The number of pairs with equal human ratings.
    """

    accuracy: float
    epsilon: float
    pairs: int
    human_ties: int


class _ComparedPairs(NamedTuple):
    gap: Floats
    """The absolute difference of the metric's scores."""
    agrees: np.ndarray
    """Whether metric and human ratings order the pair alike; False for human ties."""
    human_tie: np.ndarray
    weight: Floats
    """Weights sum to 1, and every group has the same total."""


def pairwise_accuracy(metric: ArrayLike, human: ArrayLike, groups: Groups = None, epsilon: float = 0.0) -> PairwiseAccuracy:
    """The share of pairs within a group (an image) that metric and human ratings order alike, ties included.

    Each group has the same weight, however many pairs it has. Groups without a pair are left out.

    Parameters
    ----------
    metric, human
        Scores and human ratings of the same rows.
    groups
        The group of each row. By default all rows are one group.
    epsilon
        The largest score difference that counts as a tie.

    Returns
    -------
    PairwiseAccuracy
        The accuracy and the number of pairs.

    Raises
    ------
    InputError
        If no group has two rows.
    """
    pairs = _pairs(metric, human, groups)
    metric_tie = pairs.gap <= epsilon
    correct = np.where(metric_tie, pairs.human_tie, pairs.agrees)
    return PairwiseAccuracy(float((correct * pairs.weight).sum()), epsilon, len(correct), int(pairs.human_tie.sum()))


def tie_calibrated_accuracy(metric: ArrayLike, human: ArrayLike, groups: Groups = None) -> PairwiseAccuracy:
    """The best `pairwise_accuracy` over all epsilons.

    Parameters
    ----------
    metric, human, groups
        As for `pairwise_accuracy`.

    Returns
    -------
    PairwiseAccuracy
        The best accuracy, and the smallest epsilon that reaches it.

    Raises
    ------
    InputError
        If no group has two rows.
    """
    pairs = _pairs(metric, human, groups)
    order = np.argsort(pairs.gap, kind="stable")
    gap = pairs.gap[order]
    # Moving epsilon past a pair makes it a tie: accuracy rises if the human ratings tie, and falls if the order was right.
    change = ((pairs.human_tie[order] - pairs.agrees[order].astype(np.float64)) * pairs.weight[order]).cumsum()
    last_of_gap = np.concatenate([gap[1:] != gap[:-1], [True]])
    strict = float((pairs.agrees * pairs.weight).sum())
    epsilons = gap[last_of_gap]
    accuracies = strict + change[last_of_gap]
    if epsilons[0] > 0:
        epsilons, accuracies = np.concatenate([[0.0], epsilons]), np.concatenate([[strict], accuracies])
    best = int(np.flatnonzero(accuracies >= accuracies.max() - 1e-12)[0])
    return PairwiseAccuracy(float(accuracies[best]), float(epsilons[best]), len(gap), int(pairs.human_tie.sum()))


def _pairs(metric: ArrayLike, human: ArrayLike, groups: Groups) -> _ComparedPairs:
    scores, ratings = paired(metric, human)
    if groups is None:
        groups = np.zeros(len(scores))
    group, count = group_numbers(groups, len(scores))
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(count + 1))
    gaps, agreements, ties, weights = [], [], [], []
    for start, stop in pairwise(bounds):
        rows = order[start:stop]
        i, j = np.triu_indices(len(rows), 1)
        if not len(i):
            continue
        difference, preference = scores[rows[i]] - scores[rows[j]], ratings[rows[i]] - ratings[rows[j]]
        gaps.append(np.abs(difference))
        agreements.append((np.sign(difference) == np.sign(preference)) & (preference != 0))
        ties.append(preference == 0)
        weights.append(np.full(len(i), 1 / len(i)))
    if not gaps:
        raise InputError("no group has two rows, so there is no pair to compare.")
    return _ComparedPairs(
        np.concatenate(gaps), np.concatenate(agreements), np.concatenate(ties), np.concatenate(weights) / len(gaps)
    )

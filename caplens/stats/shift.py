"""Do two sets of scores that share no captions differ? Tests of two independent samples, on one value for each image."""

from typing import NamedTuple

import numpy as np
from scipy.stats import ks_2samp, mannwhitneyu

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import Groups, sum_by_group
from caplens.stats.resampling import RESAMPLES, draws_of_groups, interval

_FEWEST = 5
"""Images that a test needs on each side."""


class Shift(NamedTuple):
    """How a new set of scores lies against an old one.

    Attributes
    ----------
    difference, low, high
        The mean of the new scores minus that of the old ones, with its 95% interval.
    higher
        The probability that the mean of a new image is higher than that of an old one; 0.5 where nothing changed.
    level_p
        Of the Mann-Whitney test: are new scores higher or lower?
    shape_p
        Of the Kolmogorov-Smirnov test: is their distribution another one in any way?
    """

    difference: float
    low: float
    high: float
    higher: float
    level_p: float
    shape_p: float


def measure_shift(
    old: Floats,
    new: Floats,
    old_groups: Groups = None,
    new_groups: Groups = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Shift:
    """How the new scores differ from the old ones.

    Parameters
    ----------
    old, new
        Scores without missing values.
    old_groups, new_groups
        The image of each score: captions of an image are not independent, so that tests take the mean of each image. By default
        each score is its own group.
    resamples, seed
        Of the bootstrap over images that gives the interval.

    Returns
    -------
    Shift
        The difference, its interval, and the tests.

    Raises
    ------
    InputError
        If there are fewer than five images on either side.
    """
    old_sums, new_sums = _sums(old, old_groups), _sums(new, new_groups)
    fewest = min(len(old_sums), len(new_sums))
    if fewest < _FEWEST:
        raise InputError(f"a test needs scores of {_FEWEST} images on each side, not {fewest}.")
    old_means, new_means = old_sums[:, 0] / old_sums[:, 1], new_sums[:, 0] / new_sums[:, 1]
    level = mannwhitneyu(new_means, old_means)
    low, high = np.nan, np.nan
    if resamples:
        differences = _resampled_mean(new_sums, resamples, seed) - _resampled_mean(old_sums, resamples, seed + 1)
        low, high = interval(differences)
    return Shift(
        float(new.mean() - old.mean()),
        low,
        high,
        float(level.statistic / (len(new_means) * len(old_means))),
        float(level.pvalue),
        float(ks_2samp(old_means, new_means).pvalue),
    )


def _sums(scores: Floats, groups: Groups) -> Floats:
    """The sum and the number of the scores of each image."""
    return sum_by_group(np.stack([scores, np.ones(len(scores))], axis=1), groups)


def _resampled_mean(sums: Floats, resamples: int, seed: int) -> Floats:
    totals = np.concatenate([draws @ sums for draws in draws_of_groups(len(sums), resamples, seed)])
    means: Floats = totals[:, 0] / totals[:, 1]
    return means

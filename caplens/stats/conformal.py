"""Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): intervals for a rating that hold with a chosen probability.

One half of the rated rows gives a monotone curve from score to rating and its local error; the other half says how many local
errors an interval must reach. Whatever the distribution, a new row that is exchangeable with those lies inside with at least the
chosen probability.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.stats.arrays import Groups, group_numbers, paired

_BINS = 40
_FEWEST = 20
"""Rows that each half needs."""
_LEAST_ERROR = 1e-3
"""Of the range of ratings: where the curve fits exactly, an interval is not infinitely narrow."""


@dataclass(frozen=True)
class ConformalBounds:
    """Turns scores into intervals of ratings.

    Attributes
    ----------
    scores, ratings, errors
        Knots of the curve: the score, the rating that is expected there, and how far ratings lie from it in the mean.
    reach
        Local errors that the interval reaches to either side.
    coverage
        The share of ratings that lie inside.
    low, high
        The range of ratings, which no interval leaves.
    """

    scores: Floats
    ratings: Floats
    errors: Floats
    reach: float
    coverage: float
    low: float
    high: float

    def interval(self, scores: Floats) -> tuple[Floats, Floats]:
        """The lower and upper bounds of the ratings of captions with these scores; NaN where there is no score."""
        expected = np.interp(scores, self.scores, self.ratings)
        half = self.reach * np.interp(scores, self.scores, self.errors)
        low, high = np.clip(expected - half, self.low, self.high), np.clip(expected + half, self.low, self.high)
        missing = np.isnan(scores)
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def conformal_bounds(
    scores: Floats, ratings: Floats, groups: Groups = None, coverage: float = 0.9, seed: int = 0
) -> ConformalBounds:
    """Bounds for the ratings of captions by their scores.

    Parameters
    ----------
    scores, ratings
        Of the rated captions.
    groups
        The group of each row, such as its image; a group is never in both halves.
    coverage
        The share of ratings that an interval has to contain.
    seed
        Of the split into halves.

    Returns
    -------
    ConformalBounds
        What turns scores into intervals.

    Raises
    ------
    InputError
        If there are too few rows, or the coverage is not between 0 and 1.
    """
    if not 0 < coverage < 1:
        raise InputError(f"the coverage of an interval lies between 0 and 1, not {coverage}.")
    first, second = paired(scores, ratings)
    group, count = group_numbers(groups, len(first))
    in_curve = np.random.default_rng(seed).permutation(count)[group] < count // 2
    if min(in_curve.sum(), (~in_curve).sum()) < _FEWEST:
        raise InputError(f"{len(first)} rated rows are too few for intervals: each half of the images needs {_FEWEST}.")
    if np.ptp(first[in_curve]) == 0:
        raise InputError("all scores are equal, and say nothing about ratings.")
    knots, expected, errors = _curve(first[in_curve], second[in_curve])
    errors = np.maximum(errors, _LEAST_ERROR * max(float(np.ptp(second)), np.finfo(float).tiny))
    rest, truth = first[~in_curve], second[~in_curve]
    nonconformity = np.sort(np.abs(truth - np.interp(rest, knots, expected)) / np.interp(rest, knots, errors))
    # The rank that keeps the promise for the next row, not only for those at hand.
    rank = int(np.ceil((len(nonconformity) + 1) * coverage)) - 1
    reach = float(nonconformity[min(rank, len(nonconformity) - 1)])
    return ConformalBounds(knots, expected, errors, reach, coverage, float(second.min()), float(second.max()))


def _curve(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean rating and mean error in bins of equally many scores, made monotone by isotonic regression."""
    order = np.argsort(scores, kind="stable")
    parts = np.array_split(order, min(_BINS, max(2, len(order) // _FEWEST)))
    knots = np.array([scores[part].mean() for part in parts])
    sizes = np.array([len(part) for part in parts], dtype=np.float64)
    means = np.array([ratings[part].mean() for part in parts])
    expected = isotonic_regression(means, weights=sizes, increasing=True).x
    knots, place = np.unique(knots, return_index=True)
    expected = expected[place]
    errors = np.abs(ratings - np.interp(scores, knots, expected))
    local = np.array([errors[part].mean() for part in parts])[place]
    return knots, expected, local

"""Which of two systems people prefer: Bradley-Terry strengths, sign tests, and how many judgements show a difference."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from caplens.arrays import Floats, Ints
from caplens.errors import InputError
from caplens.stats.resampling import RESAMPLES, draws_of_groups, interval

_TOLERANCE = 1e-10
_LARGEST_STEP = 2.0
"""Of a log strength in one iteration: far from the maximum, a whole Newton step leads too far."""
_ITERATIONS = 200
PRIOR = 0.1
"""Ties added to every pair that was compared, so that a system which always wins has a strength too."""


class Strength(NamedTuple):
    """The Bradley-Terry strength of a system: a log odds, 0 in the mean of all systems, with its 95% interval."""

    value: float
    low: float
    high: float


def bradley_terry(wins: ArrayLike, prior: float = PRIOR) -> Floats:
    """Log strengths by maximum likelihood: the odds that i is preferred to j are exp(strength[i] - strength[j]).

    Parameters
    ----------
    wins
        How often the system of the row was preferred to that of the column; a tie is half a win for both. Leading axes hold
        several such tables.
    prior
        Ties that are added to each pair that was compared.

    Returns
    -------
    array
        A strength for each system; their mean is 0.

    Raises
    ------
    InputError
        If the table is not square or has negative numbers, or some systems were never compared, not even by way of others.

    Examples
    --------
    >>> float(bradley_terry([[0, 30], [10, 0]], prior=0)[0] * 2)  # the log of 30/10
    1.0986122886681098
    """
    table = np.asarray(wins, dtype=np.float64)
    if table.ndim < 2 or table.shape[-1] != table.shape[-2] or not (table >= 0).all():
        raise InputError("wins are a table with a row and a column for each system, without negative numbers.")
    compared = (table + np.swapaxes(table, -1, -2)) > 0
    if not _connected(np.asarray(compared.reshape(-1, *table.shape[-2:]).any(axis=0))):
        raise InputError("some systems were never compared with others, not even by way of a third one, so none is stronger.")
    table = table + prior / 2 * compared
    matches = table + np.swapaxes(table, -1, -2)
    strengths = np.zeros(table.shape[:-1])
    for _ in range(_ITERATIONS):
        probability = 1 / (1 + np.exp(strengths[..., None, :] - strengths[..., :, None]))
        gradient = table.sum(axis=-1) - (matches * probability).sum(axis=-1)
        weight = matches * probability * (1 - probability)
        curvature = -weight
        diagonal = np.arange(table.shape[-1])
        curvature[..., diagonal, diagonal] = weight.sum(axis=-1) - weight[..., diagonal, diagonal]
        # Only differences of strengths count; the constant fixes their mean.
        step = np.linalg.solve(curvature + 1 / table.shape[-1], gradient[..., None])[..., 0]
        strengths += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max(initial=0) < _TOLERANCE:
            break
    result: Floats = strengths - strengths.mean(axis=-1, keepdims=True)
    return result


def _connected(compared: np.ndarray) -> bool:
    """Whether comparisons lead from the first system to all others."""
    reached = np.zeros(len(compared), dtype=bool)
    reached[:1] = True
    for _ in range(len(compared)):
        reached |= (compared & reached).any(axis=1)
    return bool(reached.all())


def bradley_terry_strengths(wins: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, prior: float = PRIOR) -> list[Strength]:
    """Strengths with 95% intervals by bootstrap over images.

    Parameters
    ----------
    wins
        A table of wins for each image, as for `bradley_terry`: images by systems by systems.
    resamples, seed
        As for `bootstrap`.
    prior
        As for `bradley_terry`.

    Returns
    -------
    list of Strength
        One for each system.

    Raises
    ------
    InputError
        As `bradley_terry`.
    """
    tables = np.asarray(wins, dtype=np.float64)
    if tables.ndim != 3:
        raise InputError("wins are one table of systems by systems for each image.")
    strengths = bradley_terry(tables.sum(axis=0), prior)
    draws = np.concatenate(list(draws_of_groups(len(tables), resamples, seed)))
    drawn = np.tensordot(draws, tables, axes=1)
    # A pair that no drawn image compares still counts as compared, or strengths would have no scale.
    compared = tables.sum(axis=0) + tables.sum(axis=0).T > 0
    resampled = bradley_terry(drawn + 1e-6 * compared, prior)
    bounds = [interval(resampled[:, system]) for system in range(len(strengths))]
    return [Strength(float(value), *bound) for value, bound in zip(strengths, bounds, strict=True)]


def sign_test(wins: int, losses: int) -> float:
    """The two-sided p-value of wins against losses, ties left out; 1 where there are neither.

    Parameters
    ----------
    wins, losses
        How many images are won and lost.

    Returns
    -------
    float
        The exact binomial p-value.

    Examples
    --------
    >>> round(sign_test(9, 1), 4)
    0.0215
    """
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def majority(votes: ArrayLike, needed: float | None = None) -> Ints:
    """1 where a majority prefers the first system, -1 where one prefers the second, else 0.

    Parameters
    ----------
    votes
        Images by raters: positive where the rater prefers the first, negative where the second, 0 for similar, NaN for none.
    needed
        How many raters are a majority; by default more than half of those who judged the image.

    Returns
    -------
    array
        One number for each image.

    Examples
    --------
    >>> majority([[1, 3, -1], [1, 0, -2], [-1, -1, 0]]).tolist()
    [1, 0, -1]
    """
    table = np.atleast_2d(np.asarray(votes, dtype=np.float64))
    bound = (~np.isnan(table)).sum(axis=1) / 2 if needed is None else np.full(len(table), needed - 0.5)
    first, second = (table > 0).sum(axis=1) > bound, (table < 0).sum(axis=1) > bound
    outcome: Ints = first.astype(np.int64) - second.astype(np.int64)
    return outcome


class Power(NamedTuple):
    """How often a study of a size shows a difference, with the 95% interval of that share by the simulations."""

    images: int
    raters: int
    power: float
    low: float
    high: float


def side_by_side_power(
    votes: ArrayLike, images: int, raters: int, simulations: int = 1000, seed: int = 0, level: float = 0.05
) -> Power:
    """How often the sign test of majorities finds a difference, in studies drawn from a pilot.

    Images are drawn from the pilot with replacement, and raters from the votes for each image.

    Parameters
    ----------
    votes
        The pilot, as for `majority`; every image has a vote.
    images, raters
        The size of the study that is planned.
    simulations, seed
        How many studies are drawn, and the seed.
    level
        The p-value below which a difference is shown.

    Returns
    -------
    Power
        The share of studies that show a difference.

    Raises
    ------
    InputError
        If the pilot has no image, or one without votes, or a size is below 1.
    """
    pilot = np.atleast_2d(np.asarray(votes, dtype=np.float64))
    counts = (~np.isnan(pilot)).sum(axis=1)
    if not pilot.size or not counts.all():
        raise InputError("the pilot needs images, each with at least one vote.")
    if min(images, raters, simulations) < 1:
        raise InputError("a study has at least one image, one rater and one simulation.")
    # The votes of an image come first in its row.
    pilot = np.take_along_axis(pilot, np.argsort(np.isnan(pilot), axis=1, kind="stable"), axis=1)
    rng = np.random.default_rng(seed)
    shown = 0
    p_values: dict[tuple[int, int], float] = {}
    for _ in range(simulations):
        rows = rng.integers(0, len(pilot), images)
        drawn = pilot[rows[:, None], rng.integers(0, counts[rows][:, None], (images, raters))]
        outcome = majority(drawn)
        tally = int((outcome > 0).sum()), int((outcome < 0).sum())
        if tally not in p_values:
            p_values[tally] = sign_test(*tally)
        shown += p_values[tally] < level
    bounds = binomtest(shown, simulations).proportion_ci(method="wilson")
    return Power(images, raters, shown / simulations, float(bounds.low), float(bounds.high))

"""Agreement between raters: Krippendorff's alpha and Fleiss' kappa."""

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError


def krippendorff_alpha(ratings: ArrayLike, level: str = "interval") -> float:
    """Krippendorff's alpha.

    Parameters
    ----------
    ratings
        A table with a row for each rater and a column for each item; NaN where a rating is missing.
    level
        The level of measurement: nominal, ordinal, interval or ratio.

    Returns
    -------
    float
        1 is perfect agreement, 0 is chance. NaN if all ratings are equal.

    Raises
    ------
    InputError
        If no item has two ratings, or the level is unknown or does not fit the ratings.

    Examples
    --------
    >>> krippendorff_alpha([[1, 2, 3], [1, 2, 3]])
    1.0
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"ratings must be a table of raters by items, not an array of shape {table.shape}.")
    rated = ~np.isnan(table)
    table, rated = table[:, rated.sum(axis=0) >= 2], rated[:, rated.sum(axis=0) >= 2]
    if not table.size:
        raise InputError("no item has two ratings, so agreement cannot be measured.")
    values = np.unique(table[rated])
    # Items by values: how many raters gave the item the value.
    counts = np.stack([((table == value) & rated).sum(axis=0) for value in values], axis=1).astype(np.float64)
    raters = counts.sum(axis=1, keepdims=True)
    coincidence = (counts / (raters - 1)).T @ counts - np.diag((counts / (raters - 1)).sum(axis=0))
    totals = coincidence.sum(axis=1)
    distance = _distance(values, totals, level)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    disagreement = (expected * distance).sum()
    return float(1 - (coincidence * distance).sum() / disagreement) if disagreement else float("nan")


def interval_alpha(items: ArrayLike, values: ArrayLike) -> float:
    """Krippendorff's alpha at the interval level, of ratings one after the other.

    Unlike a table of raters by items, this takes memory for the ratings only, however many raters there are.

    Parameters
    ----------
    items
        The number of the item of each rating.
    values
        The ratings.

    Returns
    -------
    float
        As `krippendorff_alpha`.

    Raises
    ------
    InputError
        If no item has two ratings.

    Examples
    --------
    >>> interval_alpha([0, 1, 2, 0, 1, 2], [1, 2, 3, 1, 2, 3])
    1.0
    """
    numbers, ratings = np.asarray(items, dtype=np.int64), np.asarray(values, dtype=np.float64)
    counts = np.bincount(numbers)
    paired = counts[numbers] >= 2
    numbers, ratings = numbers[paired], ratings[paired]
    if not len(ratings):
        raise InputError("no item has two ratings, so agreement cannot be measured.")
    counts = counts[counts >= 2]
    _, places = np.unique(numbers, return_inverse=True)
    means = np.bincount(places, ratings) / counts
    # The squared differences of all pairs of n ratings sum to n times the squared deviations from their mean.
    within = np.bincount(places, (ratings - means[places]) ** 2)
    observed = (within * counts / (counts - 1)).sum()
    expected = ((ratings - ratings.mean()) ** 2).sum() * len(ratings) / (len(ratings) - 1)
    return float(1 - observed / expected) if expected else float("nan")


def _distance(values: Floats, totals: Floats, level: str) -> Floats:
    """The squared difference between every two values, at the level of measurement."""
    a, b = values[:, None], values[None, :]
    match level:
        case "nominal":
            return np.where(a != b, 1.0, 0.0)
        case "ordinal":
            # The number of ratings between two values, with half of the ratings at either end.
            middle = np.cumsum(totals) - totals / 2
            return (middle[:, None] - middle[None, :]) ** 2
        case "interval":
            return (a - b) ** 2
        case "ratio":
            if (values < 0).any():
                raise InputError("the ratio level needs ratings that are not negative.")
            with np.errstate(invalid="ignore"):
                return np.nan_to_num(((a - b) / (a + b)) ** 2)
    raise InputError(f"unknown level {level!r}; choose from: nominal, ordinal, interval, ratio.")


def fleiss_kappa(counts: ArrayLike) -> float:
    """Fleiss' kappa.

    Parameters
    ----------
    counts
        A table with a row for each item and a column for each category: how many raters chose the category.

    Returns
    -------
    float
        1 is perfect agreement, 0 is chance. NaN if all raters chose the same category for all items.

    Raises
    ------
    InputError
        If items have different numbers of raters, or fewer than two.

    Examples
    --------
    >>> fleiss_kappa([[3, 0], [0, 3]])
    1.0
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not table.size or (table < 0).any():
        raise InputError("counts must be a table of items by categories without negative numbers.")
    raters = table.sum(axis=1)
    if (raters != raters[0]).any() or raters[0] < 2:
        raise InputError("Fleiss' kappa needs the same number of raters, at least two, for every item; use Krippendorff's alpha.")
    agreement = ((table**2).sum(axis=1) - raters) / (raters * (raters - 1))
    expected = ((table.sum(axis=0) / table.sum()) ** 2).sum()
    return float((agreement.mean() - expected) / (1 - expected)) if expected < 1 else float("nan")

"""How far people agree with each other: Krippendorff's alpha and Fleiss' kappa."""

import numpy as np
from numpy.typing import ArrayLike

from caplens.arrays import Floats
from caplens.errors import InputError


def krippendorff_alpha(ratings: ArrayLike, level: str = "interval") -> float:
    """Krippendorff's alpha of a table with a row for each rater and a column for each item; NaN where a rating is missing.

    `level` says how ratings compare: nominal, ordinal, interval or ratio. 1 is perfect agreement, 0 is chance.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"ratings are a table of raters by items, not of shape {table.shape}.")
    rated = ~np.isnan(table)
    table, rated = table[:, rated.sum(axis=0) >= 2], rated[:, rated.sum(axis=0) >= 2]
    if not table.size:
        raise InputError("no item has two ratings, so agreement cannot be measured.")
    values = np.unique(table[rated])
    # How often each item was given each value.
    given = np.stack([((table == value) & rated).sum(axis=0) for value in values], axis=1).astype(np.float64)
    raters = given.sum(axis=1, keepdims=True)
    coincidence = (given / (raters - 1)).T @ given - np.diag((given / (raters - 1)).sum(axis=0))
    totals = coincidence.sum(axis=1)
    distance = _distance(values, totals, level)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    disagreement = (expected * distance).sum()
    return float(1 - (coincidence * distance).sum() / disagreement) if disagreement else float("nan")


def _distance(values: Floats, totals: Floats, level: str) -> Floats:
    """Squared difference between every two values."""
    a, b = values[:, None], values[None, :]
    match level:
        case "nominal":
            return np.where(a != b, 1.0, 0.0)
        case "ordinal":
            # As many ratings as lie between two values, half of those at the ends.
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
    """Fleiss' kappa of a table with a row for each item: how many raters chose each category."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not table.size or (table < 0).any():
        raise InputError("counts are a table of items by categories without negative numbers.")
    raters = table.sum(axis=1)
    if (raters != raters[0]).any() or raters[0] < 2:
        raise InputError("Fleiss' kappa needs the same number of raters, at least two, for every item; use Krippendorff's alpha.")
    agreement = ((table**2).sum(axis=1) - raters) / (raters * (raters - 1))
    chance = ((table.sum(axis=0) / table.sum()) ** 2).sum()
    return float((agreement.mean() - chance) / (1 - chance)) if chance < 1 else float("nan")

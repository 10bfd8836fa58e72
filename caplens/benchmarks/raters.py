"""How far raters agree with each other, which bounds how far a metric can agree with them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caplens.arrays import Floats, Ints
from caplens.data.sample import Rating
from caplens.results.agreement import UNIT, RaterAgreement
from caplens.stats import Coefficient, get_coefficient, interval_alpha


def rater_agreement(ratings: Sequence[Sequence[Rating]], coefficients: Sequence[str]) -> RaterAgreement | None:
    """How far raters agree: Krippendorff's alpha, and each rater against the mean of the others. None for a single rater.

    Where ratings name no rater, the first rating of every caption is taken as one rater's, the second as another's, and so on.
    """
    table = _rater_table(ratings)
    if table.raters < 2 or not (table.counts >= 2).any():
        return None
    ceiling = {}
    for name in coefficients:
        coefficient = get_coefficient(name)
        values = [value for rows in table.rows if not np.isnan(value := _against_others(table, rows, coefficient))]
        ceiling[name] = float(np.mean(values)) * UNIT if values else float("nan")
    return RaterAgreement(table.raters, interval_alpha(table.items, table.values), ceiling)


class _RaterTable(NamedTuple):
    """All ratings, one after the other: a table of raters by captions would be mostly empty."""

    items: Ints
    """The caption of each rating."""
    values: Floats
    rows: list[slice]
    """The ratings of each rater."""
    counts: Ints
    """How many ratings each caption has."""
    sums: Floats
    """Of the ratings of each caption."""

    @property
    def raters(self) -> int:
        return len(self.rows)


def _rater_table(ratings: Sequence[Sequence[Rating]]) -> _RaterTable:
    by_rater: dict[str, dict[int, float]] = {}
    for item, of_caption in enumerate(ratings):
        for position, rating in enumerate(of_caption):
            by_rater.setdefault(rating.rater if rating.rater is not None else f"#{position}", {})[item] = rating.value
    items = np.array([item for own in by_rater.values() for item in own], dtype=np.int64)
    values = np.array([value for own in by_rater.values() for value in own.values()], dtype=np.float64)
    ends = np.cumsum([len(own) for own in by_rater.values()]).tolist()
    rows = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    counts = np.bincount(items, minlength=len(ratings))
    sums: Floats = np.bincount(items, values, len(ratings)).astype(np.float64)
    return _RaterTable(items, values, rows, counts, sums)


def _against_others(table: _RaterTable, rows: slice, coefficient: Coefficient) -> float:
    """A rater's correlation with the mean of the others, on the captions that both rated."""
    items, own = table.items[rows], table.values[rows]
    both = table.counts[items] > 1
    if both.sum() < 2:
        return float("nan")
    items, own = items[both], own[both]
    return coefficient(own, (table.sums[items] - own) / (table.counts[items] - 1))

"""`ScoreLevels`: where scores stand between chance and good captions, and what that means in words."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from caplens.arrays import Floats
from caplens.results.base import Content, floats

PERCENTILES_NOTE = (
    "Percentile: the mean of where captions stand among good captions of their language, 50 if they are as good. Scores of two"
    " languages are not on one scale; percentiles are."
)


@dataclass(frozen=True)
class ScoreLevels:
    """Where the scores of a metric stand, row by row; NaN where there is no score, or no level for the language.

    Attributes
    ----------
    chance
        The percentile among scores of captions with other images.
    good
        The percentile among scores of good captions of the same language.
    low, high
        The interval of ratings that people would give, where ratings were calibrated.
    """

    chance: Floats
    good: Floats
    low: Floats | None = None
    high: Floats | None = None

    def columns(self) -> dict[str, Floats]:
        """Name -> values, of what there is."""
        named = {"chance_percentile": self.chance, "good_percentile": self.good, "rating_low": self.low, "rating_high": self.high}
        return {name: values for name, values in named.items() if values is not None}

    @classmethod
    def from_columns(cls, content: Content, size: int) -> Self:
        """What `columns` gave, of so many captions."""
        columns = {name: floats(values) for name, values in content.items()}
        if any(len(values) != size for values in columns.values()):
            raise ValueError(f"levels are not those of {size} captions")
        chance, good = columns["chance_percentile"], columns["good_percentile"]
        return cls(chance, good, columns.get("rating_low"), columns.get("rating_high"))

    def summary(self, metric: str, calibration: str) -> str:
        """What the score of the middle caption means, in a sentence; empty if no level is known."""
        if np.isnan(self.good).all():
            return ""
        return (
            f"{metric}: half of the captions score higher than {np.nanmedian(self.chance):.0f}% of captions of other images, and"
            f" than {np.nanmedian(self.good):.0f}% of good captions of their language ({calibration})."
        )

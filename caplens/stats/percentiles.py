"""Distributions as tables of quantiles, dense at both ends, and where values stand in them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from caplens.arrays import Floats
from caplens.errors import InputError

SHARES = np.array([0, 0.1, 0.2, 0.5, *range(1, 100), 99.5, 99.8, 99.9, 100])
"""The percentiles that a table holds."""


@dataclass(frozen=True)
class Distribution:
    """Values that were measured, as a table.

    Attributes
    ----------
    count
        How many values there were.
    mean
        Their mean.
    quantiles
        At each of `SHARES`.
    """

    count: int
    mean: float
    quantiles: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        """The distribution of the values that are not NaN."""
        valid = values[~np.isnan(values)]
        if not len(valid):
            raise InputError("there are no values to make a distribution of.")
        return cls(len(valid), float(valid.mean()), np.percentile(valid, SHARES))

    def percentile(self, values: Floats) -> Floats:
        """The share of the measured values, in percent, that lie below each value; of equal ones, half. NaN stays."""
        below = self._interpolated(values)
        # Where many measured values are equal, several shares belong to one value: their middle counts.
        first = np.searchsorted(self.quantiles, values, side="left")
        last = np.searchsorted(self.quantiles, values, side="right") - 1
        tied = last > first
        middle = (SHARES[np.minimum(first, len(SHARES) - 1)] + SHARES[np.maximum(last, 0)]) / 2
        return np.where(np.isnan(values), np.nan, np.where(tied, middle, below))

    def _interpolated(self, values: Floats) -> Floats:
        with np.errstate(all="ignore"):
            below: Floats = np.interp(values, self.quantiles, SHARES, left=0, right=100)
        outside = ~((below >= 0) & (below <= 100)) & ~np.isnan(values)
        if outside.any():
            # The slope between two numbers that are next to each other near zero has no number.
            place = np.clip(np.searchsorted(self.quantiles, values[outside], side="right") - 1, 0, len(SHARES) - 2)
            low, high = self.quantiles[place], self.quantiles[place + 1]
            below[outside] = SHARES[place] + (values[outside] - low) / (high - low) * (SHARES[place + 1] - SHARES[place])
        return below

    def quantile(self, share: float) -> float:
        """The value below which this share of the measured values lie, in percent."""
        return float(np.interp(share, SHARES, self.quantiles))

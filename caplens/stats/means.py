"""Means that are pooled from sums: the additive statistics of metrics whose corpus score is the mean of the captions."""

import numpy as np

from caplens.arrays import Floats
from caplens.stats.exact import column_sums


def mean_pool(sums: Floats) -> Floats:
    """The mean, from summed (value, count) statistics."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = sums[..., 0] / sums[..., 1]
    return mean


def mean_of(values: Floats) -> float:
    """The mean of the values that are not NaN."""
    return float(mean_pool(column_sums(mean_statistics(values))))


def mean_statistics(values: Floats) -> Floats:
    scored = ~np.isnan(values)
    return np.stack([np.where(scored, values, 0.0), scored.astype(np.float64)], axis=1)

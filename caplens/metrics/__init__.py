"""Metrics: samples in, scores out."""

from caplens.metrics.base import Metric, Scores
from caplens.metrics.registry import DEFAULT_METRICS, METRICS, get_metric
from caplens.metrics.results import Results

__all__ = ["DEFAULT_METRICS", "METRICS", "Metric", "Results", "Scores", "get_metric"]

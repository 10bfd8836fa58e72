"""Metrics: samples in, scores out. The classes are imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING

from caplens.metrics.base import Collector, Metric
from caplens.metrics.external import ExternalScores
from caplens.metrics.function import FunctionMetric
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import METRICS, get_metric
from caplens.results.scores import Scores

if TYPE_CHECKING:
    from caplens.metrics.bleu import Bleu1, Bleu2, Bleu3, Bleu4
    from caplens.metrics.cider import Cider, CiderOriginal
    from caplens.metrics.clip_cider import ClipCider
    from caplens.metrics.clipscore import ClipScore, RefClipScore
    from caplens.metrics.length import Length
    from caplens.metrics.mcs import MultilingualClipScore
    from caplens.metrics.meteor import Meteor
    from caplens.metrics.pacs import PacS, RefPacS
    from caplens.metrics.rouge import RougeL
    from caplens.metrics.spice import Spice

__all__ = [
    "METRICS",
    "Bleu1",
    "Bleu2",
    "Bleu3",
    "Bleu4",
    "Cider",
    "CiderOriginal",
    "ClipCider",
    "ClipScore",
    "Collector",
    "ExternalScores",
    "FunctionMetric",
    "Length",
    "Meteor",
    "Metric",
    "MultilingualClipScore",
    "PacS",
    "RefClipScore",
    "RefPacS",
    "RougeL",
    "Scores",
    "ScoringOptions",
    "Spice",
    "get_metric",
]


def __getattr__(name: str) -> type[Metric]:
    module = next((entry.module for entry in METRICS.values() if entry.class_name == name), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    metric: type[Metric] = getattr(import_module(f"caplens.metrics.{module}"), name)
    return metric

"""caplens: how good image captions are, in any language, and how far such a measure can be trusted."""

from caplens.api import agreement, bench, bench_many, compare, crossmodal, robustness, score, write_report
from caplens.data import Rating, References, Sample, SampleFile, read_references
from caplens.errors import CaplensError, InputError, MissingExtraError
from caplens.metrics.function import metric
from caplens.metrics.options import ScoringOptions
from caplens.results import Result, ScoreResult, load_results
from caplens.version import __version__

__all__ = [
    "CaplensError",
    "InputError",
    "MissingExtraError",
    "Rating",
    "References",
    "Result",
    "Results",
    "Sample",
    "SampleFile",
    "ScoreResult",
    "ScoringOptions",
    "__version__",
    "agreement",
    "bench",
    "bench_many",
    "compare",
    "crossmodal",
    "load_results",
    "metric",
    "read_references",
    "robustness",
    "score",
    "write_report",
]

Results = ScoreResult
"""The name of `ScoreResult` in caplens 0.1."""

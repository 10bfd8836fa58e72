"""caplens: how good image captions are, in any language, and how far such a measure can be trusted.

Names are imported when first used, so that `import caplens` and `caplens --version` are quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from caplens.version import __version__

if TYPE_CHECKING:
    from caplens.api import (
        agreement,
        bench,
        bench_many,
        build_leaderboard,
        calibrate,
        caption,
        check,
        compare,
        crossmodal,
        drift,
        filter_captions,
        filter_partitions,
        fit_mid,
        plan_job,
        robustness,
        score,
        score_partitions,
        score_via_english,
        translate,
        write_report,
    )
    from caplens.data import Rating, References, Sample, SampleFile, read_references
    from caplens.errors import CaplensError, InputError, MissingExtraError
    from caplens.metrics.function import metric
    from caplens.metrics.options import ScoringOptions
    from caplens.results import Result, ScoreResult, load_results

    Results = ScoreResult

_HOMES = {
    "caplens.api": (
        "agreement", "bench", "bench_many", "build_leaderboard", "calibrate", "caption", "check", "compare", "crossmodal",
        "drift", "filter_captions", "filter_partitions", "fit_mid", "plan_job", "robustness", "score", "score_partitions",
        "score_via_english", "translate", "write_report",
    ),
    "caplens.data": ("Rating", "References", "Sample", "SampleFile", "read_references"),
    "caplens.errors": ("CaplensError", "InputError", "MissingExtraError"),
    "caplens.metrics.function": ("metric",),
    "caplens.metrics.options": ("ScoringOptions",),
    "caplens.results": ("Result", "ScoreResult", "load_results"),
}  # fmt: skip
"""Module -> the names that it defines."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

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
    "build_leaderboard",
    "calibrate",
    "caption",
    "check",
    "compare",
    "crossmodal",
    "drift",
    "filter_captions",
    "filter_partitions",
    "fit_mid",
    "load_results",
    "metric",
    "plan_job",
    "read_references",
    "robustness",
    "score",
    "score_partitions",
    "score_via_english",
    "translate",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name == "Results":
        # The name of `ScoreResult` in caplens 0.1.
        value = __getattr__("ScoreResult")
    else:
        try:
            value = import_module(f"caplens.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module 'caplens' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

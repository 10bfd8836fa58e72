"""caplens: how good image captions are, in any language, and how far such a measure can be trusted."""

from caplens.api import bench, bench_many, compare, crossmodal, robustness, score, write_report
from caplens.data import References, Sample, SampleFile, read_references
from caplens.errors import CaplensError, InputError, MissingExtraError
from caplens.metrics import Results
from caplens.version import __version__

__all__ = [
    "CaplensError",
    "InputError",
    "MissingExtraError",
    "References",
    "Results",
    "Sample",
    "SampleFile",
    "__version__",
    "bench",
    "bench_many",
    "compare",
    "crossmodal",
    "read_references",
    "robustness",
    "score",
    "write_report",
]

"""Benchmarks: human judgements under a named protocol, and systems side by side."""

from caplens.bench import crossmodal3600
from caplens.bench.base import Benchmark, Judgements, Published, Ratings
from caplens.bench.contest import Contest, Contests, Trial
from caplens.bench.cross_language import CrossLanguage, correlate_languages, read_quality
from caplens.bench.evaluation import BenchResults, evaluate, load_checked
from caplens.bench.leakage import Leakage, find_leaks
from caplens.bench.registry import BENCHMARKS, get_benchmark
from caplens.bench.systems import Comparison, compare_systems, pair

__all__ = [
    "BENCHMARKS",
    "BenchResults",
    "Benchmark",
    "Comparison",
    "Contest",
    "Contests",
    "CrossLanguage",
    "Judgements",
    "Leakage",
    "Published",
    "Ratings",
    "Trial",
    "compare_systems",
    "correlate_languages",
    "crossmodal3600",
    "evaluate",
    "find_leaks",
    "get_benchmark",
    "load_checked",
    "pair",
    "read_quality",
]

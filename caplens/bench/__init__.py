"""Benchmarks: human judgements under a named protocol, and systems side by side."""

from caplens.bench.base import Benchmark, BenchResults, Judgements, evaluate
from caplens.bench.registry import BENCHMARKS, get_benchmark
from caplens.bench.systems import Comparison, compare_systems, pair

__all__ = [
    "BENCHMARKS",
    "BenchResults",
    "Benchmark",
    "Comparison",
    "Judgements",
    "compare_systems",
    "evaluate",
    "get_benchmark",
    "pair",
]

"""Human judgements: benchmarks of others and one's own ratings, and how well metrics agree with them."""

from caplens.benchmarks.base import Benchmark, BenchmarkData, Published
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.benchmarks.registry import BENCHMARKS, get_benchmark, list_benchmarks

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "BenchmarkData",
    "PreferenceBenchmark",
    "PreferenceData",
    "Published",
    "RatedSamples",
    "RatingBenchmark",
    "Trial",
    "get_benchmark",
    "list_benchmarks",
]

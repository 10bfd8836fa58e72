"""The benchmarks by name."""

from caplens.bench.base import Benchmark
from caplens.bench.flickr8k_cf import Flickr8kCF
from caplens.bench.flickr8k_expert import Flickr8kExpert
from caplens.errors import InputError

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in (Flickr8kExpert(), Flickr8kCF())}


def get_benchmark(name: str) -> Benchmark:
    try:
        return BENCHMARKS[name]
    except KeyError:
        raise InputError(f"unknown benchmark {name!r}; choose from: {', '.join(BENCHMARKS)}.") from None

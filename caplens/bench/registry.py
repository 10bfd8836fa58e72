"""The benchmarks by name."""

from typing import Any

from caplens.bench.abstract50s import Abstract50S
from caplens.bench.activitynet_foil import ActivityNetFoil
from caplens.bench.base import Benchmark
from caplens.bench.capeval1k import CapEval1k, MultilingualCapEval1k
from caplens.bench.composite import Composite
from caplens.bench.flickr8k_cf import Flickr8kCF
from caplens.bench.flickr8k_expert import Flickr8kExpert
from caplens.bench.foil import Foil
from caplens.bench.marvl import Marvl
from caplens.bench.nebula import Nebula
from caplens.bench.pascal50s import Pascal50S
from caplens.bench.polaris import Polaris
from caplens.bench.sugarcrepe import SugarCrepe
from caplens.bench.thumb import Thumb
from caplens.bench.valse import Valse
from caplens.bench.vatex_eval import VatexEval
from caplens.bench.vicr import Vicr
from caplens.bench.winoground import Winoground
from caplens.bench.xvnli import Xvnli
from caplens.errors import InputError

BENCHMARKS: dict[str, Benchmark[Any]] = {
    benchmark.name: benchmark
    for benchmark in (
        Flickr8kExpert(), Flickr8kCF(), Composite(), Vicr(), CapEval1k(), MultilingualCapEval1k(), Polaris(), Nebula(), Thumb(),
        Pascal50S(), Abstract50S(), Foil(), Valse(), SugarCrepe(), Winoground(), Xvnli(), Marvl(), VatexEval(), ActivityNetFoil(),
    )
}  # fmt: skip


def get_benchmark(name: str) -> Benchmark[Any]:
    try:
        return BENCHMARKS[name]
    except KeyError:
        raise InputError(f"unknown benchmark {name!r}; choose from: {', '.join(BENCHMARKS)}.") from None

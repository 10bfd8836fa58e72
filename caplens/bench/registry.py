"""The benchmarks by name."""

from difflib import get_close_matches
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
    """By its name, in any case and with any dashes."""
    bare = {_bare(known): benchmark for known, benchmark in BENCHMARKS.items()}
    if _bare(name) in bare:
        return bare[_bare(name)]
    near = [f"do you mean {bare[key].name!r}?" for key in get_close_matches(_bare(name), bare, 1)]
    raise InputError(" ".join([f"unknown benchmark {name!r};", *near, f"choose from: {', '.join(BENCHMARKS)}."]))


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

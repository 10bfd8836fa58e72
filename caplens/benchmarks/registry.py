"""The benchmarks by name."""

from difflib import get_close_matches
from typing import Any

from caplens.benchmarks.base import Benchmark
from caplens.benchmarks.datasets.abstract50s import Abstract50S
from caplens.benchmarks.datasets.activitynet_foil import ActivityNetFoil
from caplens.benchmarks.datasets.capeval1k import CapEval1k, MultilingualCapEval1k
from caplens.benchmarks.datasets.caption_quality import CaptionQuality
from caplens.benchmarks.datasets.composite import Composite
from caplens.benchmarks.datasets.crisscrossed import CrisscrossedCaptions
from caplens.benchmarks.datasets.flickr8k_cf import Flickr8kCF
from caplens.benchmarks.datasets.flickr8k_expert import Flickr8kExpert
from caplens.benchmarks.datasets.foil import Foil
from caplens.benchmarks.datasets.marvl import Marvl
from caplens.benchmarks.datasets.msvd_eval import MsvdEval
from caplens.benchmarks.datasets.nebula import Nebula
from caplens.benchmarks.datasets.pascal50s import Pascal50S
from caplens.benchmarks.datasets.polaris import Polaris
from caplens.benchmarks.datasets.sugarcrepe import SugarCrepe
from caplens.benchmarks.datasets.thumb import Thumb
from caplens.benchmarks.datasets.valse import Valse
from caplens.benchmarks.datasets.vatex_eval import VatexEval
from caplens.benchmarks.datasets.vicr import Vicr
from caplens.benchmarks.datasets.winoground import Winoground
from caplens.benchmarks.datasets.xvnli import Xvnli
from caplens.errors import InputError
from caplens.plugins import find_plugins, load_plugin

PLUGINS = "caplens.benchmarks"
"""The entry points of other packages."""
BENCHMARKS: dict[str, Benchmark[Any]] = {
    benchmark.name: benchmark
    for benchmark in (
        Flickr8kExpert(), Flickr8kCF(), Composite(), Vicr(), CapEval1k(), MultilingualCapEval1k(), Polaris(), Nebula(), Thumb(),
        CrisscrossedCaptions(), CaptionQuality(),
        Pascal50S(), Abstract50S(), Foil(), Valse(), SugarCrepe(), Winoground(), Xvnli(), Marvl(), VatexEval(), ActivityNetFoil(),
        MsvdEval(),
    )
}  # fmt: skip


def list_benchmarks() -> dict[str, Benchmark[Any]]:
    """Every benchmark that there is, those of other packages included."""
    plugins = {name: _from_plugin(name) for name in find_plugins(PLUGINS) if name not in BENCHMARKS}
    return {**BENCHMARKS, **plugins}


def get_benchmark(name: str) -> Benchmark[Any]:
    """By its name, in any case and with any dashes."""
    bare = {_bare(benchmark): benchmark for benchmark in (*find_plugins(PLUGINS), *BENCHMARKS)}
    if _bare(name) not in bare:
        near = [f"did you mean {bare[key]!r}?" for key in get_close_matches(_bare(name), bare, 1)]
        choice = ", ".join(list_benchmarks())
        raise InputError(" ".join([f"unknown benchmark {name!r};", *near, f"choose from: {choice}."]))
    canonical = bare[_bare(name)]
    return BENCHMARKS[canonical] if canonical in BENCHMARKS else _from_plugin(canonical)


def _from_plugin(name: str) -> Benchmark[Any]:
    """The benchmark of an entry point: a class, or an object."""
    plugin = load_plugin(PLUGINS, name)
    benchmark = plugin() if isinstance(plugin, type) else plugin
    if not isinstance(benchmark, Benchmark):
        raise InputError(f"{name!r} is not a benchmark: it must derive from caplens.benchmarks.Benchmark.")
    return benchmark


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

"""What a benchmark of human ratings is, and how a metric is held against it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from caplens.data.languages import base_language
from caplens.data.reading import with_images
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.results import json_object
from caplens.metrics.scoring import run
from caplens.progress import track
from caplens.stats import bootstrap, bootstrapped_difference, get_coefficient, holm, interval
from caplens.stats.arrays import Floats
from caplens.version import __version__

UNIT = 100
"""Coefficients are reported times 100, as papers print them."""


@dataclass(frozen=True)
class Judgements:
    """Samples with one human value each; rows that share a group are about the same image."""

    samples: list[Sample]
    human: Floats
    warnings: list[str] = field(default_factory=list)

    @property
    def groups(self) -> list[str]:
        return [sample.group for sample in self.samples]


class Published(NamedTuple):
    """What papers report: coefficient -> metric -> value, for one protocol."""

    source: str
    protocol: str
    values: dict[str, dict[str, float]]


class Benchmark(ABC):
    """Human judgements of captions, read from the data set's own files under a named protocol."""

    name: ClassVar[str]
    summary: ClassVar[str]
    protocols: ClassVar[dict[str, str]]
    """Name -> what it does; the first is the one papers use."""
    coefficients: ClassVar[tuple[str, ...]]
    published: ClassVar[Published]

    image_folders: ClassVar[tuple[str, ...]] = ("images",)
    """Where the data set keeps its images."""

    @abstractmethod
    def load(self, data: Path, protocol: str, lang: str = "en") -> Judgements:
        """The judgements, with captions and references in `lang` where the data set has translations of them."""

    def image_folder(self, data: Path) -> Path:
        found = next((data / name for name in self.image_folders if (data / name).is_dir()), None)
        if found is None:
            raise InputError(
                f"{data}: there is no folder of images ({' or '.join(self.image_folders)}); give it with --images FOLDER."
            )
        return found


class Estimate(NamedTuple):
    value: float
    low: float
    high: float
    published: float | None


class Contrast(NamedTuple):
    """How far apart two metrics are in a coefficient; `p` is corrected for all the pairs of metrics compared."""

    coefficient: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float


@dataclass
class BenchResults:
    """How well each metric agrees with people."""

    benchmark: str
    protocol: str
    lang: str
    source: str
    results: dict[str, dict[str, Estimate]]
    contrasts: list[Contrast]
    signatures: dict[str, str]
    rows: int
    images: int
    failed: int
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens bench`."""
        return {
            "caplens": __version__,
            "benchmark": self.benchmark,
            "protocol": self.protocol,
            "lang": self.lang,
            "unit": f"x{UNIT}",
            "results": {
                metric: {name: json_object(estimate) for name, estimate in found.items()}
                for metric, found in self.results.items()
            },
            "contrasts": [json_object(contrast) for contrast in self.contrasts],
            "signatures": self.signatures,
            "published": self.source,
            "counts": {"rows": self.rows, "images": self.images, "failed": self.failed},
            "warnings": self.warnings,
        }


def evaluate(
    benchmark: Benchmark,
    data: str | PathLike[str],
    metrics: Sequence[Metric],
    protocol: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    images: str | PathLike[str] | None = None,
    lang: str = "en",
) -> BenchResults:
    """Score the benchmark's captions and correlate with people, with intervals by bootstrap over images.

    `images` is the folder of the images, where it is not one of those that the data set itself brings; `lang` the language of the
    captions, which published values are not about unless it is English.
    """
    protocol = protocol or next(iter(benchmark.protocols))
    if protocol not in benchmark.protocols:
        raise InputError(f"{benchmark.name} has no protocol {protocol!r}; choose from: {', '.join(benchmark.protocols)}.")
    if not Path(data).is_dir():
        raise InputError(f"{data}: there is no such folder; give the folder of the data set with --data.")
    judgements = benchmark.load(Path(data), protocol, base_language(lang))
    samples: Iterable[Sample] = judgements.samples
    if any("image" in metric.requires for metric in metrics):
        samples = with_images(samples, images or benchmark.image_folder(Path(data)))
    scores = run(track(samples, f"scoring {benchmark.name}", len(judgements.samples)), metrics)
    scored = ~np.any([np.isnan(found.values) for found in scores.metrics.values()], axis=0)
    human = judgements.human[scored]
    warnings = [*judgements.warnings, *scores.warnings]
    groups = [group for group, kept in zip(judgements.groups, scored, strict=True) if kept]

    results: dict[str, dict[str, Estimate]] = {metric: {} for metric in scores.metrics}
    contrasts = []
    for name in benchmark.coefficients:
        coefficient = get_coefficient(name)
        comparable = protocol == benchmark.published.protocol and base_language(lang) == "en"
        published = benchmark.published.values.get(name, {}) if comparable else {}
        drawn: dict[str, Floats] = {}
        for metric, found in track(scores.metrics.items(), f"resampling {name}", len(scores.metrics)):
            values = found.values[scored]
            drawn[metric] = bootstrap(coefficient, values, human, groups, resamples, seed) * UNIT
            results[metric][name] = Estimate(coefficient(values, human) * UNIT, *interval(drawn[metric]), published.get(metric))
        contrasts += _contrasts(name, {metric: of[name].value for metric, of in results.items()}, drawn)

    undefined = [metric for metric, of in results.items() if any(np.isnan(estimate.value) for estimate in of.values())]
    if undefined:
        warnings.append(f"no coefficient is defined for {', '.join(undefined)}: its scores, or the ratings, are all the same.")
    return BenchResults(
        benchmark=benchmark.name,
        protocol=protocol,
        lang=base_language(lang),
        source=benchmark.published.source,
        results=results,
        contrasts=contrasts,
        signatures={metric: found.signature for metric, found in scores.metrics.items()},
        rows=int(scored.sum()),
        images=len(set(groups)),
        failed=int((~scored).sum()),
        warnings=warnings,
    )


def _contrasts(coefficient: str, values: dict[str, float], drawn: dict[str, Floats]) -> list[Contrast]:
    """Every two metrics, on the same resamples of images."""
    pairs = list(combinations(values, 2))
    found = [bootstrapped_difference(values[a] - values[b], drawn[a] - drawn[b]) for a, b in pairs]
    corrected = holm([difference.p for difference in found])
    return [
        Contrast(coefficient, a, b, difference.value, difference.low, difference.high, float(p))
        for (a, b), difference, p in zip(pairs, found, corrected, strict=True)
    ]

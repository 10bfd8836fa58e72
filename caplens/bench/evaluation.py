"""Holding metrics against a benchmark, beside what papers report, with intervals and tests between the metrics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.bench.base import Benchmark, Judgements, Loaded, Measured, Rows
from caplens.bench.contest import MEAN
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError, reason
from caplens.metrics.base import Metric
from caplens.metrics.results import json_object
from caplens.metrics.scoring import run
from caplens.progress import track
from caplens.stats import bootstrapped_difference, holm, interval
from caplens.stats.arrays import Floats
from caplens.version import __version__

UNIT = 100
"""Coefficients and accuracies are reported times 100, as papers print them."""


class Estimate(NamedTuple):
    value: float
    low: float
    high: float
    published: float | None
    points: int
    """Data points, or comparisons."""
    ties: float | None
    """Of 100 comparisons, those that the metric called even."""


class Contrast(NamedTuple):
    """How far apart two metrics are in a measure; `p` is corrected for all the pairs of metrics compared."""

    measure: str
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
    without_image: int
    resamples: int
    seed: int
    warnings: list[str]
    ids: list[str] = field(repr=False)
    """The captions that have a score."""
    captions: list[str] = field(repr=False)
    scores: dict[str, Floats] = field(repr=False)
    human: Floats | None = field(default=None, repr=False)
    """A row of human values for each caption, where each has some."""

    @property
    def measures(self) -> list[str]:
        return list(next(iter(self.results.values())))

    @property
    def headline(self) -> str:
        """The measure that metrics are ranked by: the mean where there is one, else the first."""
        return MEAN if MEAN in self.measures else self.measures[0]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens bench`."""
        return {
            "caplens": __version__,
            "benchmark": self.benchmark,
            "protocol": self.protocol,
            "lang": self.lang,
            "unit": f"x{UNIT}",
            "resamples": self.resamples,
            "seed": self.seed,
            "results": {
                metric: {name: json_object(estimate) for name, estimate in found.items()}
                for metric, found in self.results.items()
            },
            "contrasts": [json_object(contrast) for contrast in self.contrasts],
            "signatures": self.signatures,
            "published": self.source,
            "counts": {
                "rows": self.rows,
                "images": self.images,
                "failed": self.failed,
                "without_image": self.without_image,
            },
            "warnings": self.warnings,
            "ids": self.ids,
            "scores": {metric: values.tolist() for metric, values in self.scores.items()},
            **({} if self.human is None else {"human": self.human.tolist()}),
        }


def evaluate(
    benchmark: Benchmark[Any],
    data: str | PathLike[str],
    metrics: Sequence[Metric],
    protocol: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    images: str | PathLike[str] | None = None,
    lang: str = "en",
    *,
    skip: bool = False,
) -> BenchResults:
    """Score the benchmark's captions and hold the scores against people, with intervals by bootstrap over images.

    `images` is the folder of the images, where it is not one of those that the data set itself brings. Captions about images
    that are not there are left out where a metric looks at images. With `skip`, metrics that cannot score any caption here are
    left out with a warning; without, that is an error.
    """
    protocol = protocol or next(iter(benchmark.protocols))
    if protocol not in benchmark.protocols:
        raise InputError(f"{benchmark.name} has no protocol {protocol!r}; choose from: {', '.join(benchmark.protocols)}.")
    lang = base_language(lang)
    home = benchmark.home(Path(data))
    loaded = load_checked(benchmark, home, protocol, lang)
    warnings = list(loaded.warnings)
    samples, present = loaded.samples, np.ones(len(loaded.samples), dtype=np.bool_)
    lacking = {} if any(sample.references for sample in samples) else {"references": "there are no references"}
    if images is not None and not Path(images).is_dir():
        raise InputError(f"{images}: there is no such folder of images.")
    if any("image" in metric.requires for metric in metrics):
        try:
            samples, present = _with_files(benchmark, samples, images or benchmark.image_folder(home))
        except InputError:
            if not skip:
                raise
            lacking["image"] = "its images are not at hand"
    metrics, reasons = _usable(benchmark, metrics, lacking, skip)
    warnings += reasons
    if not present.all():
        warnings.append(
            f"{int((~present).sum()):,} of {len(present):,} captions are about images that are not there; the results are about"
            " the others."
        )
    shown = [sample for sample, there in zip(samples, present, strict=True) if there]
    scores = run(track(shown, f"scoring {benchmark.name}", len(shown)), metrics)
    values = {name: np.full(len(samples), np.nan) for name in scores.metrics}
    for name, found in scores.metrics.items():
        values[name][present] = found.values
    scored: Rows = ~np.any([np.isnan(column) for column in values.values()], axis=0)
    source, published = benchmark.published_for(protocol, lang)
    if not present.all():
        published = {}
    measured = {
        metric: benchmark.judge(loaded, column, scored, resamples, seed)
        for metric, column in track(values.items(), "resampling", len(values))
    }
    results = {
        metric: {
            name: _estimate(one, published.get(name, {}).get(metric.partition("[")[0]) if name not in loaded.incomplete else None)
            for name, one in found.items()
        }
        for metric, found in measured.items()
    }
    warnings += scores.warnings
    reasons_by_row = (_general(why, shown[row]) for row, why in scores.problems.items())
    for why, count in Counter(reasons_by_row).most_common(3):
        warnings.append(f"{count:,} captions were left out: {why}.")
    blind = [metric for metric, of in results.items() if all(estimate.ties == UNIT for estimate in of.values())]
    if blind:
        warnings.append(f"{', '.join(blind)} cannot tell the two sides of any comparison apart: all are ties.")
    undefined = [metric for metric, of in results.items() if any(np.isnan(estimate.value) for estimate in of.values())]
    if undefined:
        warnings.append(f"no coefficient is defined for {', '.join(undefined)}: its scores, or the ratings, are all the same.")
    kept = [sample for sample, known in zip(loaded.samples, scored, strict=True) if known]
    return BenchResults(
        benchmark=benchmark.name,
        protocol=protocol,
        lang=lang,
        source=source,
        results=results,
        contrasts=_contrasts(measured),
        signatures={metric: found.signature for metric, found in scores.metrics.items()},
        rows=len(kept),
        images=len({sample.group for sample in kept}),
        failed=int((present & ~scored).sum()),
        without_image=int((~present).sum()),
        resamples=resamples,
        seed=seed,
        warnings=list(dict.fromkeys(warnings)),
        ids=[sample.id for sample in kept],
        captions=[sample.caption or "" for sample in kept],
        scores={metric: column[scored] for metric, column in values.items()},
        human=loaded.human.reshape(len(samples), -1)[scored] if isinstance(loaded, Judgements) else None,
    )


def load_checked(benchmark: Benchmark[Any], home: Path, protocol: str, lang: str) -> Loaded:
    """What the benchmark's files hold. They come from elsewhere: whatever is wrong with them is told, not raised."""
    benchmark.check_language(home, lang)
    try:
        loaded: Loaded = benchmark.load(home, protocol, lang)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(f"{home}: the files of {benchmark.name} are not laid out as they should be ({reason(error)}).") from None
    if not loaded.samples:
        raise InputError(f"{home}: there is nothing to judge in the files of {benchmark.name}.")
    for sample in loaded.samples:
        if not all(isinstance(text, str) for text in (sample.caption, *sample.references)):
            raise InputError(f"{home}: a caption or reference of {sample.id!r} is no text.")
    return loaded


def _general(why: str, sample: Sample) -> str:
    """The reason, without the name of the file if it is about that."""
    return "their images cannot be read" if sample.group in why else why


def _with_files(benchmark: Benchmark[Any], samples: list[Sample], images: str | PathLike[str]) -> tuple[list[Sample], Rows]:
    """The samples with their images' files, and which of those are there."""
    located = benchmark.located(samples, images)
    files = {str(sample.image): Path(str(sample.image)).is_file() for sample in located}
    present = np.array([files[str(sample.image)] for sample in located])
    if not present.any():
        raise InputError(f"{images}: none of the {len(files):,} images of {benchmark.name} is there, such as {samples[0].group}.")
    return located, present


def _usable(
    benchmark: Benchmark[Any], metrics: Sequence[Metric], lacking: Mapping[str, str], skip: bool
) -> tuple[list[Metric], list[str]]:
    """The metrics that find what they need here, and why not the others. `lacking` is what is not there, and how that is said."""
    gone: dict[str, list[str]] = {}
    for metric in metrics:
        for need in sorted(metric.requires & lacking.keys()):
            gone.setdefault(lacking[need], []).append(metric.name)
    kept = [metric for metric in metrics if not metric.requires & lacking.keys()]
    if not kept or (gone and not skip):
        names = ", ".join(metric.name for metric in metrics if metric not in kept)
        raise InputError(f"{benchmark.name}: {names} cannot be used here: {' and '.join(gone)}.")
    return kept, [f"{', '.join(names)} left out: {why}." for why, names in gone.items()]


def _estimate(measured: Measured, published: float | None) -> Estimate:
    low, high = interval(measured.drawn * UNIT)
    ties = None if measured.ties is None else measured.ties * UNIT
    return Estimate(measured.value * UNIT, low, high, published, measured.points, ties)


def _contrasts(measured: dict[str, dict[str, Measured]]) -> list[Contrast]:
    """Every two metrics, on the same resamples of images."""
    contrasts = []
    for name in next(iter(measured.values())):
        pairs = [((a, measured[a][name]), (b, measured[b][name])) for a, b in combinations(measured, 2)]
        found = [
            bootstrapped_difference((one.value - other.value) * UNIT, (one.drawn - other.drawn) * UNIT)
            for (_, one), (_, other) in pairs
        ]
        corrected = holm([difference.p for difference in found])
        contrasts += [
            Contrast(name, a, b, difference.value, difference.low, difference.high, float(p))
            for ((a, _), (b, _)), difference, p in zip(pairs, found, corrected, strict=True)
        ]
    return contrasts

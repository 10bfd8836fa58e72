"""Evaluating metrics on human judgements, beside published values, with intervals and tests between the metrics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.benchmarks.base import Benchmark, BenchmarkData, Measured
from caplens.benchmarks.published_by_model import PublishedValues, published_by_model
from caplens.benchmarks.raters import rater_agreement
from caplens.benchmarks.rating import RatedSamples
from caplens.benchmarks.translations import is_translated, load_translated
from caplens.data.content import CAPTIONS, captions_hash
from caplens.data.languages import base_language
from caplens.data.sample import ITEM, Rating, Sample
from caplens.errors import InputError, reason
from caplens.metrics.base import Metric
from caplens.metrics.scoring import run_metrics
from caplens.progress import track
from caplens.results.agreement import UNIT, AgreementResult, Estimate, MetricContrast, RaterAgreement
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES, bootstrapped_difference, holm, interval

_MOST_REASONS = 10


@dataclass(frozen=True)
class ScoredData:
    """A benchmark's captions, their scores, and which of them count."""

    data: BenchmarkData
    present: Flags
    """Captions whose images are there, where a metric needs them."""
    result: ScoreResult
    """Of the captions that are present."""
    values: dict[str, Floats]
    """Metric -> the score of each caption, NaN where there is none."""
    scored: Flags
    """Captions that every metric has scored."""


def evaluate_metrics(
    benchmark: Benchmark[Any],
    data: str | PathLike[str],
    metrics: Sequence[Metric],
    protocol: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    images: str | PathLike[str] | None = None,
    lang: str = "en",
    *,
    skip: bool = False,
) -> AgreementResult:
    """Score the benchmark's captions and compare the scores with people, with intervals by bootstrap over images.

    `images` is the folder of the images, where it is not one of those that the data set itself brings. Captions about images
    that are missing are left out where a metric needs images. With `skip`, metrics that cannot score any caption here are left
    out with a warning; without, that is an error.
    """
    protocol = protocol or next(iter(benchmark.protocols))
    if protocol not in benchmark.protocols:
        raise InputError(f"{benchmark.name} has no protocol {protocol!r}; choose from: {', '.join(benchmark.protocols)}.")
    if images is not None and not Path(images).is_dir():
        raise InputError(f"{images}: there is no such folder of images.")
    lang = base_language(lang)
    home = benchmark.home(Path(data))
    loaded = load_checked(benchmark, home, protocol, lang)
    unavailable = {} if any(sample.references for sample in loaded.samples) else {"references": "there are no references"}
    loaded = replace(loaded, samples=_with_items(loaded.samples))
    samples, present = loaded.samples, np.ones(len(loaded.samples), dtype=np.bool_)
    if any({"image", "video"} & metric.needs for metric in metrics):
        try:
            samples, present = _with_files(benchmark, samples, images or benchmark.image_folder(home))
        except InputError:
            if not skip:
                raise
            unavailable |= {"image": "its images are missing", "video": "its videos are missing"}
    metrics, warnings = _usable(benchmark, metrics, unavailable, skip)
    scored = score_data(benchmark.name, loaded, samples, present, metrics)
    source, values = benchmark.published_for(protocol, lang)
    signatures = {metric: scores.signature for metric, scores in scored.result.metrics.items()}
    published = published_by_model(values, source, signatures, benchmark.name, protocol, lang)
    result = judge_metrics(benchmark, scored, published.values if present.all() else {}, resamples, seed)
    result.protocol, result.lang, result.source = protocol, lang, published.source
    result.same_model = published.same_model
    result.raters = _rater_agreement(loaded, result.measures)
    result.warnings = list(dict.fromkeys([*loaded.warnings, *warnings, *result.warnings]))
    return result


def score_data(name: str, data: BenchmarkData, samples: list[Sample], present: Flags, metrics: Sequence[Metric]) -> ScoredData:
    """Score those of `samples` that are present."""
    shown = [sample for sample, there in zip(samples, present, strict=True) if there]
    result = run_metrics(track(shown, f"scoring {name}", len(shown)), metrics)
    values = {name: np.full(len(samples), np.nan) for name in result.metrics}
    for name, scores in result.metrics.items():
        values[name][present] = scores.values
    scored: Flags = ~np.any([np.isnan(column) for column in values.values()], axis=0)
    return ScoredData(data, present, result, values, scored)


def judge_metrics(
    benchmark: Benchmark[Any], scored: ScoredData, published: PublishedValues, resamples: int, seed: int
) -> AgreementResult:
    """How well each metric agrees with people, by every measure of the benchmark."""
    loaded = scored.data
    if not scored.scored.any():
        raise InputError(f"{benchmark.name}: no caption has a score by every metric. {' '.join(_absence_warnings(scored))}")
    measured = {
        metric: benchmark.judge(loaded, column, scored.scored, resamples, seed)
        for metric, column in track(scored.values.items(), "resampling", len(scored.values))
    }
    results = {
        metric: {
            name: _estimate(value, None if name in loaded.incomplete else _published(published.get(name, {}), metric))
            for name, value in by_measure.items()
        }
        for metric, by_measure in measured.items()
    }
    kept = [sample for sample, has_score in zip(loaded.samples, scored.scored, strict=True) if has_score]
    human = loaded.human.reshape(len(loaded.samples), -1)[scored.scored] if isinstance(loaded, RatedSamples) else None
    return AgreementResult(
        benchmark=benchmark.name,
        protocol="",
        lang="en",
        source="",
        results=results,
        contrasts=_contrasts(measured),
        signatures={metric: scores.signature for metric, scores in scored.result.metrics.items()},
        rows=len(kept),
        images=len({sample.group for sample in kept}),
        failed=scored.result.failed,
        without_image=int((~scored.present).sum()),
        resamples=resamples,
        seed=seed,
        warnings=[*_absence_warnings(scored), *scored.result.warnings, *_judgement_warnings(results)],
        ids=[sample.id for sample in kept],
        captions=[sample.caption or "" for sample in kept],
        scores={metric: column[scored.scored] for metric, column in scored.values.items()},
        human=human,
        langs=_named(kept, "lang"),
        systems=_named(kept, "system"),
        content_hashes={CAPTIONS: captions_hash(kept)},
    )


def _named(samples: Sequence[Sample], field: str) -> list[str | None]:
    """What captions name in a field; empty where none names anything."""
    column = [getattr(sample, field) for sample in samples]
    return column if any(value is not None for value in column) else []


def _with_items(samples: Sequence[Sample]) -> list[Sample]:
    """The samples with the ids of their items, by which scores that were computed elsewhere are found."""
    items = zip(samples, item_ids(samples), strict=True)
    return [sample if sample.id == item else replace(sample, meta={**sample.meta, ITEM: item}) for sample, item in items]


def _rater_agreement(loaded: BenchmarkData, measures: Sequence[str]) -> RaterAgreement | None:
    """How far raters agree, where the data set tells them apart."""
    if not isinstance(loaded, RatedSamples) or loaded.raters is None:
        return None
    return rater_agreement([[Rating(value) for value in row] for row in loaded.raters.tolist()], measures)


def item_ids(samples: Sequence[Sample]) -> list[str]:
    """For each sample the id of the first one with the same caption of the same image; ratings of one caption share it."""
    first: dict[tuple[object, ...], str] = {}
    return [
        first.setdefault((sample.group, sample.caption, sample.references, sample.lang, sample.system), sample.id)
        for sample in samples
    ]


def load_checked(benchmark: Benchmark[Any], home: Path, protocol: str, lang: str) -> BenchmarkData:
    """The data of a benchmark. Its files come from elsewhere: whatever is wrong with them becomes an `InputError`."""
    translated = is_translated(benchmark, home, lang)
    if not translated:
        benchmark.check_language(home, lang)
    try:
        load = partial(load_translated, benchmark) if translated else benchmark.load
        loaded: BenchmarkData = load(home, protocol, lang)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{home}: the files of {benchmark.name} do not have the expected layout ({reason(error)}).") from None
    if not loaded.samples:
        raise InputError(f"{home}: there is nothing to judge in the files of {benchmark.name}.")
    for sample in loaded.samples:
        if not all(isinstance(text, str) for text in (sample.caption, *sample.references)):
            raise InputError(f"{home}: a caption or reference of {sample.id!r} is not text.")
        if not all(isinstance(name, str | PathLike | None) for name in (sample.image, sample.video)):
            raise InputError(f"{home}: the image or video of {sample.id!r} is not a name.")
    return loaded


def _absence_warnings(scored: ScoredData) -> list[str]:
    """What was left out, and why."""
    warnings = []
    present = scored.present
    if not present.all():
        warnings.append(
            f"{int((~present).sum()):,} of {len(present):,} captions are about images that are missing; the results are about"
            " the others."
        )
    shown = [sample for sample, there in zip(scored.data.samples, present, strict=True) if there]
    metrics = len(scored.result.metrics)
    reasons: Counter[tuple[str, str]] = Counter()
    for row, errors in scored.result.row_errors.items():
        names = "" if len(errors) == metrics else ", ".join(name for name, _ in errors)
        reasons[names, _general(errors[0][1].reason, shown[row])] += 1
    for (names, why), count in reasons.most_common(_MOST_REASONS):
        because = f", because {names} cannot score them" if names else ""
        warnings.append(f"{count:,} captions were left out{because}: {why}.")
    return warnings


def _judgement_warnings(results: dict[str, dict[str, Estimate]]) -> list[str]:
    warnings = []
    blind = [metric for metric, by_measure in results.items() if all(estimate.ties == UNIT for estimate in by_measure.values())]
    if blind:
        warnings.append(f"{', '.join(blind)} cannot tell the two sides of any comparison apart: all are ties.")
    undefined = [
        metric for metric, by_measure in results.items() if any(np.isnan(estimate.value) for estimate in by_measure.values())
    ]
    if undefined:
        warnings.append(f"no coefficient is defined for {', '.join(undefined)}: its scores, or the ratings, are all the same.")
    return warnings


def _general(why: str, sample: Sample) -> str:
    """The reason, without the name of the file if it is about that."""
    return "their images cannot be read" if sample.group in why else why


def _with_files(benchmark: Benchmark[Any], samples: list[Sample], images: str | PathLike[str]) -> tuple[list[Sample], Flags]:
    """The samples with their images' files, and which of those exist."""
    located = benchmark.located(samples, images)
    paths = [str(sample.video if sample.image is None else sample.image) for sample in located]
    exists = {path: Path(path).exists() for path in paths}
    present = np.array([exists[path] for path in paths])
    if not present.any():
        what = "images" if samples[0].video is None else "videos"
        raise InputError(
            f"{images}: none of the {len(exists):,} {what} of {benchmark.name} is there, such as {samples[0].group}."
        )
    return located, present


def _usable(
    benchmark: Benchmark[Any], metrics: Sequence[Metric], unavailable: Mapping[str, str], skip: bool
) -> tuple[list[Metric], list[str]]:
    """The metrics that find what they need here, and a warning for the others.

    `unavailable` is what is missing, and how that is said.
    """
    left_out: dict[str, list[str]] = {}
    for metric in metrics:
        for need in sorted(metric.needs & unavailable.keys()):
            left_out.setdefault(unavailable[need], []).append(metric.name)
    kept = [metric for metric in metrics if not metric.needs & unavailable.keys()]
    if not kept or (left_out and not skip):
        names = ", ".join(metric.name for metric in metrics if metric not in kept)
        raise InputError(f"{benchmark.name}: {names} cannot be used here: {' and '.join(left_out)}.")
    return kept, [f"{', '.join(names)} left out: {why}." for why, names in left_out.items()]


def _published(by_metric: Mapping[str, float | None], metric: str) -> float | None:
    """The value of this metric with its model, or of its kind."""
    return by_metric[metric] if metric in by_metric else by_metric.get(metric.partition("[")[0])


def _estimate(measured: Measured, published: float | None) -> Estimate:
    low, high = interval(measured.drawn * UNIT)
    ties = None if measured.ties is None else measured.ties * UNIT
    return Estimate(measured.value * UNIT, low, high, published, measured.points, ties)


def _contrasts(measured: dict[str, dict[str, Measured]]) -> list[MetricContrast]:
    """Every two metrics, on the same resamples of images."""
    contrasts = []
    for name in next(iter(measured.values())):
        pairs = [((a, measured[a][name]), (b, measured[b][name])) for a, b in combinations(measured, 2)]
        differences = [
            bootstrapped_difference((first.value - second.value) * UNIT, (first.drawn - second.drawn) * UNIT)
            for (_, first), (_, second) in pairs
        ]
        corrected = holm([difference.p for difference in differences])
        contrasts += [
            MetricContrast(name, a, b, difference.value, difference.low, difference.high, float(p), difference.p)
            for ((a, _), (b, _)), difference, p in zip(pairs, differences, corrected, strict=True)
        ]
    return contrasts

"""Captioning systems side by side: corpus scores with intervals, and which differences are more than chance."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from os import PathLike, fspath
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from caplens.arrays import Floats
from caplens.data.sample import IMAGE_ID, Sample
from caplens.embed.videos import clip_of
from caplens.errors import InputError
from caplens.metrics.base import Metric, missing_input
from caplens.metrics.scoring import run_metrics
from caplens.results.comparison import Comparison, SystemContrast, SystemScore
from caplens.results.row_errors import RowError
from caplens.results.scores import ScoreResult, Scores
from caplens.stats import (
    CORRECTION,
    RESAMPLES,
    SystemPair,
    bootstrap_pooled,
    exchange_systems,
    get_correction,
    interval,
    smallest_p,
)
from caplens.stats.exact import column_sums

_CONVINCING = 0.05
_SHOWN_REASONS, _SHOWN_SYSTEMS = 3, 6
_LAST_NUMBER = re.compile(r"\d+$", re.ASCII)
SampleKey = tuple[str, str | None]
"""Id and language."""


class Alignment(NamedTuple):
    """The captions that every system has, in one order."""

    samples: dict[str, list[Sample]]
    unpaired: dict[str, int]
    """System -> captions whose id another system lacks."""
    repeated: dict[str, int]
    """System -> captions left out because their id appears twice."""
    contradicted: int = 0
    """Captions about which systems have different references."""

    def warnings(self) -> list[str]:
        unpaired = [
            f"{name}: {count} captions whose ids others lack were left out." for name, count in self.unpaired.items() if count
        ]
        repeated = [
            f"{name}: {count} captions whose ids appear twice were left out." for name, count in self.repeated.items() if count
        ]
        contradicted = (
            [f"{self.contradicted} captions have other references in one file than in another; each is scored against its own."]
            if self.contradicted
            else []
        )
        return unpaired + repeated + contradicted


def align_systems(systems: Mapping[str, Iterable[Sample]]) -> Alignment:
    """The captions about what every system has a caption about, in one order."""
    by_key: dict[str, dict[SampleKey, Sample]] = {}
    repeated = dict.fromkeys(systems, 0)
    for name, samples in systems.items():
        by_key[name] = {}
        for sample in samples:
            if sample.invalid:
                repeated[name] += 1
            elif by_key[name].setdefault(sample.key, sample) is not sample:
                raise InputError(f"{name}: the id {sample.id!r} appears twice, so it cannot be paired. Give each its own id.")
    common = [key for key in next(iter(by_key.values())) if all(key in samples for samples in by_key.values())]
    if not common:
        firsts = [(name, next(iter(samples))) for name, samples in by_key.items() if samples]
        examples = "; ".join(f"{name}: {identifier!r}" for name, (identifier, _) in firsts[:_SHOWN_SYSTEMS])
        raise InputError(f"the systems have no id in common ({examples}); use the same ids (and languages) in every file.")
    _check_same_images(list(by_key.values()), common)
    unpaired = {name: len(samples) - len(common) for name, samples in by_key.items()}
    contradicted = _contradictions(list(by_key.values()), common)
    paired = {name: [samples[key] for key in common] for name, samples in by_key.items()}
    return Alignment(paired, unpaired, repeated, contradicted)


def _contradictions(systems: Sequence[Mapping[SampleKey, Sample]], common: Sequence[SampleKey]) -> int:
    """How many captions have other references in one file than in another."""
    return sum(len({frozenset(samples[key].references) for samples in systems if samples[key].references}) > 1 for key in common)


def _check_same_images(systems: Sequence[Mapping[SampleKey, Sample]], common: Sequence[SampleKey]) -> None:
    """Captions are paired by `id`; an error if they are about different images."""
    for key in common:
        image_ids = {str(samples[key].meta[IMAGE_ID]) for samples in systems if samples[key].meta.get(IMAGE_ID) is not None}
        if len(image_ids) > 1:
            raise InputError(
                f"the captions {key[0]!r} of several systems are about different images by their 'image_id'"
                f" ({', '.join(sorted(image_ids))}). Remove the column 'id' to pair captions by image."
            )
        _check_same_files([samples[key] for samples in systems])
        _check_same_seconds([samples[key] for samples in systems])
    _check_which_id(systems)


def _check_which_id(systems: Sequence[Mapping[SampleKey, Sample]]) -> None:
    """An error if captions of one system could be paired with another's by `id` and by `image_id`."""
    with_images = [samples for samples in systems if any(sample.image_id for sample in samples.values())]
    without = [samples for samples in systems if samples not in with_images]
    for samples in with_images if without else ():
        for sample in samples.values():
            if sample.image_id is not None and any((sample.image_id, sample.key[1]) in others for others in without):
                raise InputError(
                    f"the caption {sample.id!r} has both an 'id' and an 'image_id' ({sample.image_id!r}), and another system has"
                    " captions of either; both could be meant. Remove the column that is not."
                )


def _check_same_files(samples: Sequence[Sample]) -> None:
    files = {PurePath(path).stem: path for sample in samples if (path := _file_of(sample)) is not None}
    # Names of COCO's images are written with and without what comes before their number.
    if not all(_is_name_of(*sorted(names, key=len, reverse=True)) for names in combinations(files, 2)):
        raise InputError(
            f"the captions {samples[0].id!r} of several systems are about different images ({', '.join(sorted(files.values()))})."
            " Give captions of one image one id."
        )


def _is_name_of(name: str, shorter: str) -> bool:
    """Whether a name is the shorter one, or has it as its last number or after an underscore: COCO_val2014_000000000042, 42."""
    if shorter.isdecimal() and shorter.isascii():
        number = _LAST_NUMBER.search(name)
        return number is not None and number[0].lstrip("0") == shorter.lstrip("0")
    return name == shorter or name.endswith(f"_{shorter}")


def _check_same_seconds(samples: Sequence[Sample]) -> None:
    """Captions of one id are about one part of a video, where its seconds are in the files."""
    parts = {clip_of(sample)[1:3] for sample in samples if sample.video is not None}
    if len(parts) > 1:
        raise InputError(
            f"the captions {samples[0].id!r} of several systems are about different seconds of a video. Give captions of"
            " one part one id."
        )


def _file_of(sample: Sample) -> str | None:
    """The path of the image or video, if it is in a file."""
    about = sample.image if sample.image is not None else sample.video
    return fspath(about) if isinstance(about, str | PathLike) else None


def score_systems(systems: Mapping[str, Sequence[Sample]], metrics: Sequence[Metric]) -> tuple[dict[str, ScoreResult], int]:
    """Score aligned captions, each metric on those that it can score for every system; and how many no metric can score.

    Captions that cannot be scored for one system are left out for all before scoring, because a caption's CIDEr depends on the
    captions that are scored with it.
    """
    errors_by_needs = {needs: _common_errors(systems, needs) for needs in {metric.needs for metric in metrics}}
    errors = {metric.name: errors_by_needs[metric.needs] for metric in metrics}
    size = len(next(iter(systems.values())))
    kept = [row for row in range(size) if any(row not in of_metric for of_metric in errors.values())]
    if not kept:
        raise InputError(f"no caption can be scored for every system: {next(iter(errors.values()))[0].reason}.")
    for name, of_metric in errors.items():
        if len(of_metric) == size:
            raise InputError(f"no caption can be scored with {name} for every system: {of_metric[0].reason}.")
    systems = {name: [replace(samples[row], system=name) for row in kept] for name, samples in systems.items()}
    errors_of = cache(partial(_common_errors, systems))
    results = {name: run_metrics(samples, metrics, errors_of=errors_of) for name, samples in systems.items()}
    _keep_common_rows(results)
    return results, size - len(kept)


def _keep_common_rows(results: dict[str, ScoreResult]) -> None:
    """Leave out for all systems what turned out to have no score for one, such as an image that cannot be read."""
    for name in next(iter(results.values())).metrics:
        errors = {row: error for result in results.values() for row, error in result[name].errors.items()}
        unscored = np.any([np.isnan(result[name].values) for result in results.values()], axis=0)
        for result in results.values():
            scores = result[name]
            values = np.where(unscored, np.nan, scores.values)
            statistics = np.where(unscored[:, None], 0.0, scores.statistics)
            result.metrics[name] = replace(scores, values=values, statistics=statistics, errors=dict(sorted(errors.items())))


def _common_errors(systems: Mapping[str, Sequence[Sample]], needs: frozenset[str]) -> dict[int, RowError]:
    """Row -> why it cannot be scored for some system."""
    errors: dict[int, RowError] = {}
    for samples in systems.values():
        for row, sample in enumerate(samples):
            error = missing_input(sample, needs)
            if error is not None:
                errors.setdefault(row, error)
    return errors


def compare_systems(
    results: Mapping[str, ScoreResult],
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = CORRECTION,
    left_out: int = 0,
    baseline: str | None = None,
) -> Comparison:
    """Compare systems scored with the same metrics on the same samples, by image: every two, or each with a baseline.

    p-values are corrected for the pairs of systems, by each metric. `left_out` captions could not be scored by any metric.
    """
    first = next(iter(results.values()))
    if any(result.ids != first.ids for result in results.values()):
        raise InputError("systems can be compared on the same ids in the same order only.")
    pairs = pairs_of_systems(list(results), baseline)
    p_values = _permuted(results, pairs, seed)
    contrasts: list[SystemContrast] = []
    scores: dict[str, dict[str, SystemScore]] = {}
    warnings = [warning for result in results.values() for warning in result.warnings]
    for metric, example in first.metrics.items():
        corrected = get_correction(correction)(p_values[metric])
        scores[metric], of_metric = _compare_by(metric, results, pairs, resamples, seed)
        contrasts += [
            contrast._replace(p=float(p), p_corrected=float(p_corrected))
            for contrast, p, p_corrected in zip(of_metric, p_values[metric], corrected, strict=True)
        ]
        warnings += _coverage_warnings(metric, example)
        if not example.corpus_is_pooled:
            warnings.append(f"{metric}: means of the captions' scores are compared, which is not quite its corpus score.")
    images = len(set(first.groups))
    warnings += [*_power_warnings(len(pairs), images), *_doubtful_warnings(contrasts)]
    failed = {row for result in results.values() for row in result.failed_rows}
    return Comparison(
        systems=list(results),
        scores=scores,
        contrasts=contrasts,
        signatures={metric: scored.signature for metric, scored in first.metrics.items()},
        samples=len(first.ids),
        correction=correction,
        failed=left_out + len(failed),
        warnings=list(dict.fromkeys([*warnings, *_failure_warnings(left_out + len(failed))])),
        ids=first.ids,
        langs=first.langs,
        values={metric: {name: result[metric].values for name, result in results.items()} for metric in first.metrics},
        content_hashes={name: result.content_hashes for name, result in results.items()},
        baseline=baseline,
        images=images,
        resamples=resamples,
        seed=seed,
    )


def pairs_of_systems(systems: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Every two systems, or each beside the baseline."""
    if baseline is None:
        return list(combinations(systems, 2))
    if baseline not in systems:
        raise InputError(f"the baseline {baseline!r} is none of the systems: {', '.join(systems)}.")
    return [(system, baseline) for system in systems if system != baseline]


def _compare_by(
    metric: str, results: Mapping[str, ScoreResult], pairs: Sequence[tuple[str, str]], resamples: int, seed: int
) -> tuple[dict[str, SystemScore], list[SystemContrast]]:
    """The scores of every system by one metric, and the differences of pairs, with intervals."""
    statistics = {name: result[metric].statistics for name, result in results.items()}
    example = next(iter(results.values()))
    pool, groups = example[metric].pool, example.groups
    drawn = {name: bootstrap_pooled(values, pool, groups, resamples, seed) for name, values in statistics.items()}
    scores = {name: SystemScore(float(pool(column_sums(values))), *interval(drawn[name])) for name, values in statistics.items()}
    contrasts = []
    for one, other in pairs:
        low, high = interval(drawn[one] - drawn[other])
        difference = scores[one].value - scores[other].value
        contrasts.append(SystemContrast(metric, one, other, difference, low, high, float("nan"), float("nan")))
    return scores, contrasts


def _permuted(results: Mapping[str, ScoreResult], pairs: Sequence[tuple[str, str]], seed: int) -> dict[str, Floats]:
    """Metric -> the p-value of each pair of systems."""
    first = next(iter(results.values()))
    tests = [
        SystemPair(results[one][metric].statistics, results[other][metric].statistics, scores.pool)
        for metric, scores in first.metrics.items()
        for one, other in pairs
    ]
    p_values = exchange_systems(tests, first.groups, len(pairs), seed)
    return dict(zip(first.metrics, np.split(p_values, len(first.metrics)), strict=True))


def _coverage_warnings(metric: str, scores: Scores) -> list[str]:
    """Say so where a metric compares fewer captions than the systems have in common."""
    if not scores.errors:
        return []
    reasons = ", ".join(dict.fromkeys(error.reason for error in list(scores.errors.values())[:_SHOWN_REASONS]))
    total = len(scores.values)
    return [f"{metric}: {total - len(scores.errors)} of {total} captions are compared; the others lack a score ({reasons})."]


def _doubtful_warnings(contrasts: Sequence[SystemContrast]) -> list[str]:
    """Say where the test calls two systems different, and the interval of their difference contains 0."""
    doubtful = [c for c in contrasts if c.p_corrected < _CONVINCING and c.low < 0 < c.high]
    named = ", ".join(f"{c.first} − {c.second} by {c.metric}" for c in doubtful[:_SHOWN_REASONS])
    more = " and others" if len(doubtful) > _SHOWN_REASONS else ""
    return [f"the test finds a difference and its interval contains 0: {named}{more}. Do not rely on it."] if doubtful else []


def _failure_warnings(failed: int) -> list[str]:
    if not failed:
        return []
    return [f"{failed} captions that cannot be scored for every system (empty, no references, or no image) were left out."]


def _power_warnings(pairs: int, images: int) -> list[str]:
    """Say so where no difference, however large, could be significant."""
    smallest = min(1.0, pairs * smallest_p(images))
    if not pairs or smallest <= _CONVINCING:
        return []
    asked = "one comparison" if pairs == 1 else f"{pairs} comparisons"
    return [
        f"with only {images} images and {asked} of each metric, no p can be below {smallest:.3f}, however different the systems"
        " are. Compare them on more images, or fewer systems with a baseline."
    ]

"""The robustness of metrics to perturbed captions: how far the mean score drops, and how often a perturbed caption scores lower.

The drop in percent is what PR-MCS reports (tables 7 to 11). It depends on the zero point of the score. How often perturbed
captions score lower does not, and is reported as well.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.scoring import missing_score_warnings, run_metrics
from caplens.perturbation.base import Perturbation, Protocol
from caplens.perturbation.nouns import how_found
from caplens.perturbation.substitution import Substitution
from caplens.progress import track
from caplens.results.robustness import ALL, PerturbationEffect, RobustnessResult
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES, bootstrap_pooled, interval

_MOST_OBJECTS = 1000
_STATISTICS = 6
"""Of a caption: its score, that of its perturbed form, 1, and whether that is lower, tied, and another caption at all."""


def perturbed(
    sample: Sample, perturbation: Perturbation, seed: int = 0, lang: str | None = None, protocol: Protocol = "paper"
) -> Sample | None:
    """Perturb the caption of a sample.

    Parameters
    ----------
    sample
        The sample. `meta["objects"]` may list its critical objects.
    perturbation
        How to perturb the caption.
    seed
        The seed of the random choices.
    lang
        The language of a sample that has none of its own.
    protocol
        One of `PROTOCOLS`.

    Returns
    -------
    Sample or None
        A copy with the perturbed caption and a new id; `meta` has the name of the perturbation and the original caption. None if
        the caption cannot be perturbed in this way, or nothing is left of it.

    Raises
    ------
    InputError
        If `objects` is not a list of strings.
    """
    caption = perturbation(sample.caption or "", sample.lang or lang, seed, sample.id, objects_of(sample), protocol)
    if caption is None:
        return None
    meta = {**sample.meta, "perturbation": perturbation.name, "original": sample.caption}
    return replace(sample, id=f"{sample.id}:{perturbation.name}", caption=caption, meta=meta)


def objects_of(sample: Sample) -> tuple[str, ...] | None:
    """The critical objects of a caption, or None if it names none; in tables of text the list is JSON in its cell."""
    objects = sample.meta.get("objects")
    if isinstance(objects, str) and objects.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            objects = json.loads(objects)
    if objects is None or objects == "":
        return None
    if not isinstance(objects, list | tuple) or not all(isinstance(text, str) and text for text in objects):
        raise InputError(f"sample {sample.id!r}: 'objects' must be a list of strings, none of them empty.")
    if len(objects) > _MOST_OBJECTS:
        raise InputError(f"sample {sample.id!r}: {len(objects):,} 'objects' are more than {_MOST_OBJECTS:,}.")
    return tuple(objects)


def measure_robustness(
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    perturbations: Sequence[Perturbation],
    lang: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    protocol: Protocol = "paper",
) -> RobustnessResult:
    """Score captions and their perturbed forms.

    Parameters
    ----------
    samples
        The original captions, with what the metrics need.
    metrics
        The metrics to test.
    perturbations
        The perturbations to apply to each caption.
    lang
        The language of samples that have none of their own.
    resamples
        The number of bootstrap resamples for confidence intervals.
    seed
        The seed of the perturbations and of the bootstrap.
    protocol
        One of `PROTOCOLS`.

    Returns
    -------
    RobustnessResult
        The effect of each perturbation on each metric, by language.

    Raises
    ------
    InputError
        If there are no captions, or none of them can be perturbed.
    """
    originals = [replace(sample, lang=sample.lang or lang) for sample in samples]
    if not originals:
        raise InputError("there are no captions to perturb.")
    pairs, skipped = _perturbed_pairs(originals, perturbations, seed, protocol)
    if not pairs:
        raise InputError("none of the captions can be perturbed in these ways; they are too short.")
    scored_samples = [*originals, *(pair.sample for pair in pairs)]
    result = run_metrics(track(scored_samples, "scoring", len(scored_samples)), metrics)
    original_rows = np.array([pair.original for pair in pairs])
    perturbed_rows = np.arange(len(originals), len(scored_samples))
    columns = _PairColumns.of(pairs, originals)
    unchanged = {name: int((~columns.changed[columns.perturbations == name]).sum()) for name in skipped}
    effects: list[PerturbationEffect] = []
    for name, scores in result.metrics.items():
        original_scores, perturbed_scores = scores.values[original_rows], scores.values[perturbed_rows]
        both_scored = ~np.isnan(original_scores) & ~np.isnan(perturbed_scores)
        effects += _effects(name, original_scores, perturbed_scores, both_scored, columns, list(skipped), resamples, seed)
    signatures = {name: scores.signature for name, scores in result.metrics.items()}
    rows = [*range(len(originals)), *original_rows.tolist()]
    failed = {rows[row] for row in result.failed_rows}
    notes = [*result.warnings, *missing_score_warnings(_of_originals(result, len(originals)), lang)]
    nouns = _noun_finders(columns) if Substitution.name in skipped else {}
    return RobustnessResult(effects, skipped, len(failed), signatures, notes, protocol, unchanged, nouns, seed)


def _noun_finders(columns: "_PairColumns") -> dict[str, str]:
    """Language -> how its nouns were found."""
    return {lang: how_found(lang) for lang in sorted(set(columns.langs.tolist()))}


def _plain(caption: str) -> str:
    """As perturbed captions have it: each run of whitespace is one space."""
    return " ".join(caption.split())


def _of_originals(result: ScoreResult, size: int) -> ScoreResult:
    """The scores of the captions themselves, which come first."""
    metrics = {
        name: replace(scores, errors={row: error for row, error in scores.errors.items() if row < size})
        for name, scores in result.metrics.items()
    }
    return ScoreResult(result.ids[:size], result.groups[:size], metrics, result.langs[:size], result.systems[:size])


class _PerturbedPair(NamedTuple):
    perturbation: str
    original: int
    """The row of the original caption."""
    sample: Sample


class _PairColumns(NamedTuple):
    """Columns with one value for each pair of a caption and its perturbed form."""

    perturbations: "np.ndarray[Any, Any]"
    langs: "np.ndarray[Any, Any]"
    groups: "np.ndarray[Any, Any]"
    changed: Flags

    @classmethod
    def of(cls, pairs: Sequence["_PerturbedPair"], originals: Sequence[Sample]) -> "_PairColumns":
        samples = [originals[pair.original] for pair in pairs]
        return cls(
            np.array([pair.perturbation for pair in pairs]),
            np.array([base_language(sample.lang or "en") for sample in samples]),
            np.array([sample.group for sample in samples], dtype=object),
            np.array([pair.sample.caption != _plain(sample.caption or "") for pair, sample in zip(pairs, samples, strict=True)]),
        )


def _perturbed_pairs(
    originals: Sequence[Sample], perturbations: Sequence[Perturbation], seed: int, protocol: Protocol
) -> tuple[list[_PerturbedPair], dict[str, int]]:
    """The perturbed captions, and how many captions each perturbation cannot be applied to."""
    pairs = []
    skipped = {perturbation.name: 0 for perturbation in perturbations}
    for perturbation in track(perturbations, "perturbing", len(perturbations)):
        for row, sample in enumerate(originals):
            perturbed_sample = perturbed(sample, perturbation, seed, protocol=protocol)
            if perturbed_sample is None:
                skipped[perturbation.name] += 1
            else:
                pairs.append(_PerturbedPair(perturbation.name, row, perturbed_sample))
    return pairs, skipped


def _effects(
    metric: str,
    original_scores: Floats,
    perturbed_scores: Floats,
    both_scored: Flags,
    columns: _PairColumns,
    perturbations: Sequence[str],
    resamples: int,
    seed: int,
) -> Iterator[PerturbationEffect]:
    """The effect of each perturbation, and of all together, on one metric, in each language and in all."""
    langs = sorted(set(columns.langs.tolist()))
    changed = columns.changed.astype(np.float64)
    lower = (perturbed_scores < original_scores) & columns.changed
    tied = (perturbed_scores == original_scores) & columns.changed
    statistics = np.stack([original_scores, perturbed_scores, np.ones(len(changed)), lower, tied, changed], axis=1)
    for lang in [*([ALL] if len(langs) > 1 else []), *langs]:
        for name in [*perturbations, *([ALL] if len(perturbations) > 1 else [])]:
            cells = [
                [both_scored & (columns.langs == one) & (columns.perturbations == kind) for kind in _members(name, perturbations)]
                for one in _members(lang, langs)
            ]
            cells = [[rows for rows in of_language if rows.any()] for of_language in cells]
            cells = [of_language for of_language in cells if of_language]
            if cells:
                yield _effect(metric, lang, name, statistics, cells, columns.groups, resamples, seed)


def _members(name: str, names: Sequence[str]) -> Sequence[str]:
    return names if name == ALL else [name]


def _effect(
    metric: str,
    lang: str,
    perturbation: str,
    statistics: Floats,
    cells: Sequence[Sequence[Flags]],
    groups: Any,
    resamples: int,
    seed: int,
) -> PerturbationEffect:
    """`cells` are the rows of each perturbation in each language; all together is the mean over kinds, then over languages."""
    summed = np.concatenate([statistics * rows[:, None] for of_language in cells for rows in of_language], axis=1)
    counts = [len(of_language) for of_language in cells]
    rows = np.any([rows for of_language in cells for rows in of_language], axis=0)
    summed, groups = summed[rows], groups[rows]
    resampled = bootstrap_pooled(summed, lambda sums: _measures(_means(sums, counts))[..., :2], groups, resamples, seed)
    means = _means(summed.sum(axis=0), counts)
    drop, accuracy, ties = _measures(means)
    original, perturbed_mean = _nanmean(means, -2)[:2]
    return PerturbationEffect(
        metric, lang, perturbation, int(rows.sum()), float(original), float(perturbed_mean),
        float(drop), *interval(resampled[:, 0]), float(accuracy), *interval(resampled[:, 1]), float(ties),
    )  # fmt: skip


def _means(sums: Floats, counts: Sequence[int]) -> Floats:
    """Mean original and perturbed score, and shares that are lower and tied: the mean over kinds, of each language."""
    cells = sums.reshape(*sums.shape[:-1], sum(counts), _STATISTICS)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores, shares = cells[..., :2] / cells[..., 2:3], cells[..., 3:5] / cells[..., 5:]
    values = np.concatenate([scores, shares], axis=-1)
    ends = np.cumsum(counts)
    return np.stack([_nanmean(values[..., end - count : end, :], -2) for count, end in zip(counts, ends, strict=True)], axis=-2)


def _nanmean(values: Floats, axis: int) -> Floats:
    with warnings.catch_warnings():
        # Where a perturbation changed no caption, there is no share.
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(values, axis=axis))


def _measures(means: Floats) -> Floats:
    """The change of the mean score in percent of the original mean; of 100 captions, how many are lower, and tied.

    The mean over languages, as PR-MCS averages its percentages.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = 100 * (means[..., 1] / means[..., 0] - 1)
    return _nanmean(np.stack([drop, 100 * means[..., 2], 100 * means[..., 3]], axis=-1), -2)

"""The robustness of metrics to perturbed captions: how far the mean score drops, and how often a perturbed caption scores lower.

The drop in percent is what PR-MCS reports (tables 7 to 11). It depends on the zero point of the score. How often perturbed
captions score lower does not, and is reported as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.scoring import missing_score_warnings, run_metrics
from caplens.perturbation.base import Perturbation
from caplens.progress import track
from caplens.results.robustness import ALL, PerturbationEffect, RobustnessResult
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES, bootstrap_pooled, interval


def perturbed(sample: Sample, perturbation: Perturbation, seed: int = 0, lang: str | None = None) -> Sample | None:
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

    Returns
    -------
    Sample or None
        A copy with the perturbed caption and a new id; `meta` has the name of the perturbation and the original caption. None if
        the caption cannot be perturbed in this way.

    Raises
    ------
    InputError
        If `objects` is not a list of strings.
    """
    objects = sample.meta.get("objects", ())
    if isinstance(objects, str) or not all(isinstance(text, str) for text in objects):
        raise InputError(f"sample {sample.id!r}: 'objects' must be a list of strings.")
    caption = perturbation(sample.caption or "", sample.lang or lang, seed, sample.id, tuple(objects))
    if caption is None:
        return None
    meta = {**sample.meta, "perturbation": perturbation.name, "original": sample.caption}
    return replace(sample, id=f"{sample.id}:{perturbation.name}", caption=caption, meta=meta)


def measure_robustness(
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    perturbations: Sequence[Perturbation],
    lang: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
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
    pairs, skipped = _perturbed_pairs(originals, perturbations, seed)
    if not pairs:
        raise InputError("none of the captions can be perturbed in these ways; they are too short.")
    scored_samples = [*originals, *(pair.sample for pair in pairs)]
    result = run_metrics(track(scored_samples, "scoring", len(scored_samples)), metrics)
    original_rows = np.array([pair.original for pair in pairs])
    perturbed_rows = np.arange(len(originals), len(scored_samples))
    columns = _PairColumns(
        np.array([pair.perturbation for pair in pairs]),
        np.array([base_language(originals[row].lang or "en") for row in original_rows]),
        np.array([originals[row].group for row in original_rows], dtype=object),
    )
    effects: list[PerturbationEffect] = []
    for name, scores in result.metrics.items():
        original_scores, perturbed_scores = scores.values[original_rows], scores.values[perturbed_rows]
        both_scored = ~np.isnan(original_scores) & ~np.isnan(perturbed_scores)
        effects += _effects(name, original_scores, perturbed_scores, both_scored, columns, list(skipped), resamples, seed)
    signatures = {name: scores.signature for name, scores in result.metrics.items()}
    rows = [*range(len(originals)), *original_rows.tolist()]
    failed = {rows[row] for row in result.failed_rows}
    warnings = [*result.warnings, *missing_score_warnings(_of_originals(result, len(originals)), lang)]
    return RobustnessResult(effects, skipped, len(failed), signatures, warnings)


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


def _perturbed_pairs(
    originals: Sequence[Sample], perturbations: Sequence[Perturbation], seed: int
) -> tuple[list[_PerturbedPair], dict[str, int]]:
    """The perturbed captions, and how many captions each perturbation cannot be applied to."""
    pairs = []
    skipped = {perturbation.name: 0 for perturbation in perturbations}
    for perturbation in track(perturbations, "perturbing", len(perturbations)):
        for row, sample in enumerate(originals):
            perturbed_sample = perturbed(sample, perturbation, seed)
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
    for lang in [*([ALL] if len(langs) > 1 else []), *langs]:
        in_language = both_scored & ((columns.langs == lang) | (lang == ALL))
        for name in [*perturbations, *([ALL] if len(perturbations) > 1 else [])]:
            rows = np.flatnonzero(in_language & ((columns.perturbations == name) | (name == ALL)))
            if len(rows):
                yield _effect(
                    metric, lang, name, original_scores[rows], perturbed_scores[rows], columns.groups[rows], resamples, seed
                )


def _effect(
    metric: str,
    lang: str,
    perturbation: str,
    original_scores: Floats,
    perturbed_scores: Floats,
    groups: Any,
    resamples: int,
    seed: int,
) -> PerturbationEffect:
    lower = (perturbed_scores < original_scores).astype(np.float64)
    statistics = np.stack([original_scores, perturbed_scores, lower, np.ones(len(original_scores))], axis=1)
    resampled = bootstrap_pooled(
        statistics, lambda sums: np.stack([_drop(sums), _accuracy(sums)], axis=-1), groups, resamples, seed
    )
    drop_interval, accuracy_interval = interval(resampled[:, 0]), interval(resampled[:, 1])
    sums = statistics.sum(axis=0)
    return PerturbationEffect(
        metric, lang, perturbation, len(original_scores), float(original_scores.mean()), float(perturbed_scores.mean()),
        float(_drop(sums)), *drop_interval, float(_accuracy(sums)), *accuracy_interval,
        float(100 * np.mean(perturbed_scores == original_scores)),
    )  # fmt: skip


def _drop(sums: Floats) -> Floats:
    """The change of the mean score in percent of the original mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        drop: Floats = 100 * (sums[..., 1] / sums[..., 0] - 1)
    return drop


def _accuracy(sums: Floats) -> Floats:
    """The percentage of captions that score higher than their perturbed form."""
    accuracy: Floats = 100 * sums[..., 2] / sums[..., 3]
    return accuracy

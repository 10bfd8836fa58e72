"""How much a score notices that captions were made worse: how far it drops, and how often it drops at all.

The drop in percent is what PR-MCS reports (tables 7 to 11). It depends on where a score's zero lies; how often the worse caption
scores lower does not, and is reported beside it.
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
from caplens.metrics.scoring import run_metrics
from caplens.perturbation.base import Perturbation
from caplens.progress import track
from caplens.results.robustness import ALL, PerturbationEffect, RobustnessResult
from caplens.stats import bootstrap_pooled, interval


def perturbed(sample: Sample, perturbation: Perturbation, seed: int = 0, lang: str | None = None) -> Sample | None:
    """The sample with a worse caption, or None where that is impossible.

    Its critical objects are those in `meta["objects"]`; `lang` is its language if it names none.
    """
    objects = sample.meta.get("objects", ())
    if isinstance(objects, str) or not all(isinstance(text, str) for text in objects):
        raise InputError(f"sample {sample.id!r}: its 'objects' must be a list of texts.")
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
    resamples: int = 1000,
    seed: int = 0,
) -> RobustnessResult:
    """Score captions and their perturbed forms; `lang` is the language of samples that name none."""
    originals = [replace(sample, lang=sample.lang or lang) for sample in samples]
    if not originals:
        raise InputError("there are no captions to perturb.")
    pairs, skipped = _perturbed_pairs(originals, perturbations, seed)
    if not pairs:
        raise InputError("none of the captions can be perturbed in these ways; they are too short.")
    everything = [*originals, *(pair.sample for pair in pairs)]
    result = run_metrics(track(everything, "scoring", len(everything)), metrics)
    first = np.array([pair.original for pair in pairs])
    second = np.arange(len(originals), len(everything))
    about = _PairColumns(
        np.array([pair.perturbation for pair in pairs]),
        np.array([base_language(originals[row].lang or "en") for row in first]),
        np.array([originals[row].group for row in first], dtype=object),
    )
    effects: list[PerturbationEffect] = []
    failed: set[int] = set()
    for name, scores in result.metrics.items():
        original, worse = scores.values[first], scores.values[second]
        both = ~np.isnan(original) & ~np.isnan(worse)
        failed |= set(first[~both].tolist())
        effects += _effects(name, original, worse, both, about, list(skipped), resamples, seed)
    signatures = {name: scores.signature for name, scores in result.metrics.items()}
    return RobustnessResult(effects, skipped, len(failed), signatures, result.warnings)


class _PerturbedPair(NamedTuple):
    perturbation: str
    original: int
    """The row of the caption that was perturbed."""
    sample: Sample


class _PairColumns(NamedTuple):
    """Of each pair of a caption and its perturbed form."""

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
            worse = perturbed(sample, perturbation, seed)
            if worse is None:
                skipped[perturbation.name] += 1
            else:
                pairs.append(_PerturbedPair(perturbation.name, row, worse))
    return pairs, skipped


def _effects(
    metric: str,
    original: Floats,
    worse: Floats,
    both: Flags,
    about: _PairColumns,
    kinds: Sequence[str],
    resamples: int,
    seed: int,
) -> Iterator[PerturbationEffect]:
    """The effect on one metric of each perturbation and of all, in each language and in all."""
    langs = sorted(set(about.langs.tolist()))
    for lang in [*([ALL] if len(langs) > 1 else []), *langs]:
        in_language = both & ((about.langs == lang) | (lang == ALL))
        for kind in [*kinds, *([ALL] if len(kinds) > 1 else [])]:
            rows = np.flatnonzero(in_language & ((about.perturbations == kind) | (kind == ALL)))
            if len(rows):
                yield _effect(metric, lang, kind, original[rows], worse[rows], about.groups[rows], resamples, seed)


def _effect(
    metric: str, lang: str, kind: str, original: Floats, worse: Floats, groups: Any, resamples: int, seed: int
) -> PerturbationEffect:
    lower = (worse < original).astype(np.float64)
    statistics = np.stack([original, worse, lower, np.ones(len(original))], axis=1)
    drawn = bootstrap_pooled(statistics, lambda sums: np.stack([_drop(sums), _accuracy(sums)], axis=-1), groups, resamples, seed)
    drops, accuracies = interval(drawn[:, 0]), interval(drawn[:, 1])
    sums = statistics.sum(axis=0)
    return PerturbationEffect(
        metric, lang, kind, len(original), float(original.mean()), float(worse.mean()), float(_drop(sums)), *drops,
        float(_accuracy(sums)), *accuracies, float(100 * np.mean(worse == original)),
    )  # fmt: skip


def _drop(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        drop: Floats = 100 * (sums[..., 1] / sums[..., 0] - 1)
    return drop


def _accuracy(sums: Floats) -> Floats:
    accuracy: Floats = 100 * sums[..., 2] / sums[..., 3]
    return accuracy

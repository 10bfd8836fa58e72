"""How much a score notices that captions were made worse: how far it drops, and how often it drops at all.

The drop in percent is what PR-MCS reports (tables 7 to 11). It depends on where a score's zero lies; how often the worse caption
scores lower does not, and is reported beside it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.results import json_object
from caplens.metrics.scoring import run
from caplens.perturb.base import Perturbation
from caplens.progress import track
from caplens.stats import bootstrap_pooled, interval
from caplens.stats.arrays import Floats
from caplens.version import __version__

ALL = "all"
"""Stands for every language, or for the mean of the perturbations."""


class Noticed(NamedTuple):
    """One metric, language and perturbation."""

    metric: str
    lang: str
    perturbation: str
    captions: int
    original: float
    """Mean score of the captions."""
    perturbed: float
    drop: float
    """In percent of the original; negative where scores fall, as the paper prints it."""
    drop_low: float
    drop_high: float
    accuracy: float
    """Of 100 captions, how many score higher than their perturbed form."""
    accuracy_low: float
    accuracy_high: float
    ties: float


@dataclass
class Robustness:
    found: list[Noticed]
    impossible: dict[str, int]
    """Perturbation -> captions that it cannot be done to."""
    failed: int
    signatures: dict[str, str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens robustness`."""
        return {
            "caplens": __version__,
            "robustness": [json_object(one) for one in self.found],
            "impossible": self.impossible,
            "counts": {"failed": self.failed},
            "signatures": self.signatures,
            "warnings": self.warnings,
        }


def perturbed(sample: Sample, perturbation: Perturbation, seed: int = 0, lang: str | None = None) -> Sample | None:
    """The sample with a worse caption, or None where that is impossible.

    Its critical objects are those in `meta["objects"]`; `lang` is its language if it names none.
    """
    objects = sample.meta.get("objects", ())
    if isinstance(objects, str) or not all(isinstance(text, str) for text in objects):
        raise InputError(f"sample {sample.id!r}: its 'objects' must be a list of texts.")
    made = perturbation(sample.caption or "", sample.lang or lang, seed, sample.id, tuple(objects))
    if made is None:
        return None
    about = {**sample.meta, "perturbation": perturbation.name, "original": sample.caption}
    return replace(sample, id=f"{sample.id}:{perturbation.name}", caption=made, meta=about)


def measure_robustness(
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    perturbations: Sequence[Perturbation],
    lang: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Robustness:
    """Score captions and their perturbed forms; `lang` is the language of samples that name none."""
    originals = [replace(sample, lang=sample.lang or lang) for sample in samples]
    if not originals:
        raise InputError("there are no captions to perturb.")
    everything, pairs = list(originals), []
    impossible = {perturbation.name: 0 for perturbation in perturbations}
    for perturbation in track(perturbations, "perturbing", len(perturbations)):
        for row, sample in enumerate(originals):
            worse = perturbed(sample, perturbation, seed)
            if worse is None:
                impossible[perturbation.name] += 1
            else:
                pairs.append((perturbation.name, row, len(everything)))
                everything.append(worse)
    if not pairs:
        raise InputError("none of the captions can be perturbed in these ways; they are too short.")
    results = run(track(everything, "scoring", len(everything)), metrics)
    kinds = np.array([kind for kind, _, _ in pairs])
    first, second = (np.array([pair[place] for pair in pairs]) for place in (1, 2))
    langs = np.array([base_language(originals[row].lang or "en") for row in first])
    groups = np.array([originals[row].group for row in first], dtype=object)
    found: list[Noticed] = []
    failed: set[int] = set()
    for name, scores in results.metrics.items():
        original, worse_scores = scores.values[first], scores.values[second]
        known = ~np.isnan(original) & ~np.isnan(worse_scores)
        failed |= set(first[~known].tolist())
        for language in [*([ALL] if len(set(langs)) > 1 else []), *sorted(set(langs))]:
            mine = known & ((langs == language) | (language == ALL))
            for kind in [*impossible, *([ALL] if len(impossible) > 1 else [])]:
                rows = np.flatnonzero(mine & ((kinds == kind) | (kind == ALL)))
                if len(rows):
                    found.append(
                        _noticed(name, language, kind, original[rows], worse_scores[rows], groups[rows], resamples, seed)
                    )
    signatures = {name: scores.signature for name, scores in results.metrics.items()}
    return Robustness(found, impossible, len(failed), signatures, results.warnings)


def _noticed(
    metric: str, lang: str, kind: str, original: Floats, worse: Floats, groups: Any, resamples: int, seed: int
) -> Noticed:
    lower = (worse < original).astype(np.float64)
    statistics = np.stack([original, worse, lower, np.ones(len(original))], axis=1)
    drawn = bootstrap_pooled(statistics, lambda sums: np.stack([_drop(sums), _accuracy(sums)], axis=-1), groups, resamples, seed)
    drops, accuracies = interval(drawn[:, 0]), interval(drawn[:, 1])
    sums = statistics.sum(axis=0)
    return Noticed(
        metric, lang, kind, len(original), float(original.mean()), float(worse.mean()), float(_drop(sums)), *drops,
        float(_accuracy(sums)), *accuracies, float(100 * np.mean(worse == original)),
    )  # fmt: skip


def _drop(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        made: Floats = 100 * (sums[..., 1] / sums[..., 0] - 1)
    return made


def _accuracy(sums: Floats) -> Floats:
    made: Floats = 100 * sums[..., 2] / sums[..., 3]
    return made

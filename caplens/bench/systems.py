"""Captioning systems side by side: corpus scores with intervals, and which differences are more than luck."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import problem
from caplens.metrics.results import Results, json_object, null_if_nan
from caplens.stats import bootstrap_pooled, get_correction, interval, permute_systems
from caplens.stats.arrays import Floats
from caplens.version import __version__

_CONVINCING = 0.05


class SystemScore(NamedTuple):
    value: float
    low: float
    high: float


class SystemContrast(NamedTuple):
    """How much the first system is above the second. `p` is of a paired permutation test, `p_corrected` for all pairs."""

    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float


@dataclass
class Comparison:
    """Scores of several systems on the captions that all of them have."""

    systems: list[str]
    scores: dict[str, dict[str, SystemScore]]
    """Metric -> system -> score."""
    contrasts: list[SystemContrast]
    signatures: dict[str, str]
    samples: int
    correction: str
    failed: int = 0
    warnings: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list, repr=False)
    langs: list[str | None] = field(default_factory=list, repr=False)
    values: dict[str, dict[str, Floats]] = field(default_factory=dict, repr=False)
    """Metric -> system -> the score of each caption."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens compare`."""
        return {
            "caplens": __version__,
            "systems": self.systems,
            "scores": {
                metric: {system: json_object(score) for system, score in found.items()} for metric, found in self.scores.items()
            },
            "contrasts": [json_object(contrast) for contrast in self.contrasts],
            "correction": self.correction,
            "signatures": self.signatures,
            "counts": {"samples": self.samples, "failed": self.failed},
            "warnings": self.warnings,
            "ids": self.ids,
            **({"lang": self.langs} if any(self.langs) else {}),
            "values": {
                metric: {system: [null_if_nan(value) for value in values.tolist()] for system, values in found.items()}
                for metric, found in self.values.items()
            },
        }


class Pairing(NamedTuple):
    """What could not be compared."""

    unpaired: dict[str, int]
    """System -> captions whose id another system lacks."""
    failed: int
    """Captions that could not be scored for some system."""

    def warnings(self) -> list[str]:
        found = [
            f"{name}: {count} captions whose ids others lack were left out." for name, count in self.unpaired.items() if count
        ]
        if self.failed:
            found.append(
                f"{self.failed} captions that cannot be scored for every system (empty, or no references) were left out."
            )
        return found


def pair(systems: Mapping[str, Iterable[Sample]], requires: frozenset[str]) -> tuple[dict[str, list[Sample]], Pairing]:
    """The captions about what every system has a caption about, in one order.

    This comes before scoring, because a caption's CIDEr depends on which others are scored with it.
    """
    by_key: dict[str, dict[object, Sample]] = {}
    for name, samples in systems.items():
        by_key[name] = {}
        for sample in samples:
            if by_key[name].setdefault(sample.key, sample) is not sample:
                raise InputError(
                    f"{name}: the id {sample.id!r} stands there twice, so it cannot be paired. Give each its own id."
                )
    common = [key for key in next(iter(by_key.values())) if all(key in samples for samples in by_key.values())]
    if not common:
        raise InputError("the systems have no id in common; use the same ids (and languages) in every file.")
    good = [key for key in common if not any(problem(samples[key], requires) for samples in by_key.values())]
    if not good:
        reason = next(lack for samples in by_key.values() for key in common if (lack := problem(samples[key], requires)))
        raise InputError(f"no caption can be scored for every system: {reason}.")
    pairing = Pairing({name: len(samples) - len(common) for name, samples in by_key.items()}, len(common) - len(good))
    return {name: [samples[key] for key in good] for name, samples in by_key.items()}, pairing


def compare_systems(results: Mapping[str, Results], resamples: int = 1000, seed: int = 0, correction: str = "holm") -> Comparison:
    """Compare systems scored with the same metrics on the same samples, resampled by image."""
    first = next(iter(results.values()))
    if any(result.ids != first.ids for result in results.values()):
        raise InputError("systems can be compared on the same ids in the same order only.")
    scores: dict[str, dict[str, SystemScore]] = {}
    found = []
    warnings = [warning for result in results.values() for warning in result.warnings]
    for metric, example in first.metrics.items():
        pool = example.pool
        statistics = {name: result[metric].statistics for name, result in results.items()}
        drawn = {name: bootstrap_pooled(values, pool, first.groups, resamples, seed) for name, values in statistics.items()}
        scores[metric] = {
            name: SystemScore(float(pool(values.sum(axis=0))), *interval(drawn[name])) for name, values in statistics.items()
        }
        for a, b in combinations(results, 2):
            permuted = permute_systems(statistics[a], statistics[b], pool, first.groups, resamples, seed)
            low, high = interval(drawn[a] - drawn[b])
            found.append(SystemContrast(metric, a, b, permuted.value, low, high, permuted.p, permuted.p))
        if not example.corpus_is_pooled:
            warnings.append(f"{metric}: means of the captions' scores are compared, which is not quite its corpus score.")
    corrected = get_correction(correction)([contrast.p for contrast in found])
    images = len(set(first.groups))
    smallest = min(1.0, len(found) * max(2 / 2**images, 1 / (resamples + 1)))
    if found and smallest > _CONVINCING:
        few = f"{images} images" if 2 / 2**images > 1 / (resamples + 1) else f"{resamples} resamples"
        warnings.append(
            f"with only {few} and {len(found)} questions asked at once, no p can be below {smallest:.3f}, however different the"
            " systems are."
        )
    return Comparison(
        systems=list(results),
        scores=scores,
        contrasts=[contrast._replace(p_corrected=float(p)) for contrast, p in zip(found, corrected, strict=True)],
        signatures={metric: scored.signature for metric, scored in first.metrics.items()},
        samples=len(first.ids),
        correction=correction,
        warnings=list(dict.fromkeys(warnings)),
        ids=first.ids,
        langs=first.langs,
        values={metric: {name: result[metric].values for name, result in results.items()} for metric in first.metrics},
    )

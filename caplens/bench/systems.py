"""Captioning systems side by side: corpus scores with intervals, and which differences are more than luck."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from caplens.errors import InputError
from caplens.metrics.base import Pool
from caplens.metrics.results import Results, number
from caplens.stats import bootstrap_pooled, bootstrap_systems, interval, permute_systems
from caplens.stats.arrays import Floats
from caplens.stats.significance import CORRECTIONS
from caplens.version import __version__


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
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens compare`."""
        return {
            "caplens": __version__,
            "systems": self.systems,
            "scores": {
                metric: {
                    system: {key: number(value) for key, value in score._asdict().items()} for system, score in found.items()
                }
                for metric, found in self.scores.items()
            },
            "contrasts": [contrast._asdict() for contrast in self.contrasts],
            "correction": self.correction,
            "signatures": self.signatures,
            "counts": {"samples": self.samples},
            "warnings": self.warnings,
        }


def compare_systems(results: Mapping[str, Results], resamples: int = 1000, seed: int = 0, correction: str = "holm") -> Comparison:
    """Compare systems scored with the same metrics, paired by id and resampled by image."""
    if len(results) < 2:
        raise InputError("a comparison needs at least two systems.")
    if correction not in CORRECTIONS:
        raise InputError(f"unknown correction {correction!r}; choose from: {', '.join(CORRECTIONS)}.")
    rows, warnings = _common_rows(results)
    first = next(iter(results.values()))
    scores: dict[str, dict[str, SystemScore]] = {}
    found = []
    samples = 0
    for metric, example in first.metrics.items():
        statistics, groups, dropped = _paired_statistics(results, rows, metric)
        samples = max(samples, len(groups))
        if dropped:
            warnings.append(f"{metric}: {dropped} captions that some system has no score for were left out for all.")
        scores[metric] = {
            system: SystemScore(
                _pooled(values, example.pool),
                *interval(bootstrap_pooled(values, example.pool, groups, resamples, seed)),
            )
            for system, values in statistics.items()
        }
        for a, b in combinations(results, 2):
            permuted = permute_systems(statistics[a], statistics[b], example.pool, groups, resamples, seed)
            drawn = bootstrap_systems(statistics[a], statistics[b], example.pool, groups, resamples, seed)
            found.append(SystemContrast(metric, a, b, permuted.value, drawn.low, drawn.high, permuted.p, permuted.p))
        if not example.corpus_is_pooled:
            warnings.append(f"{metric}: means of the captions' scores are compared, which is not quite its corpus score.")
    corrected = CORRECTIONS[correction]([contrast.p for contrast in found])
    return Comparison(
        systems=list(results),
        scores=scores,
        contrasts=[contrast._replace(p_corrected=float(p)) for contrast, p in zip(found, corrected, strict=True)],
        signatures={metric: found.signature for metric, found in first.metrics.items()},
        samples=samples,
        correction=correction,
        warnings=[*dict.fromkeys(warning for result in results.values() for warning in result.warnings), *warnings],
    )


def _common_rows(results: Mapping[str, Results]) -> tuple[dict[str, list[int]], list[str]]:
    """For each system the rows of the ids that all systems have, in one order."""
    places = {system: {identifier: row for row, identifier in enumerate(result.ids)} for system, result in results.items()}
    common = [identifier for identifier in next(iter(places.values())) if all(identifier in ids for ids in places.values())]
    if not common:
        raise InputError("the systems have no id in common; use the same ids for the same images in every file.")
    missing = {system: len(ids) - len(common) for system, ids in places.items() if len(ids) > len(common)}
    warnings = [f"{system}: {count} captions whose ids the others lack were left out." for system, count in missing.items()]
    return {system: [ids[identifier] for identifier in common] for system, ids in places.items()}, warnings


def _paired_statistics(
    results: Mapping[str, Results], rows: Mapping[str, list[int]], metric: str
) -> tuple[dict[str, Floats], list[str], int]:
    values = {system: result[metric].values[rows[system]] for system, result in results.items()}
    scored = ~np.any([np.isnan(column) for column in values.values()], axis=0)
    if not scored.any():
        raise InputError(f"{metric}: no caption has a score from every system.")
    system = next(iter(results))
    groups = [results[system].groups[row] for row, kept in zip(rows[system], scored, strict=True) if kept]
    statistics = {name: result[metric].statistics[rows[name]][scored] for name, result in results.items()}
    return statistics, groups, int((~scored).sum())


def _pooled(statistics: Floats, pool: Pool) -> float:
    return float(pool(statistics.sum(axis=0)))

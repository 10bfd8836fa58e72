"""The first sentences of a section: what was found, what it means, and where it ends to be certain."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from caplens.results.agreement import AgreementResult
from caplens.results.check import CheckResult, Verdict
from caplens.results.comparison import Comparison, SystemContrast
from caplens.results.drift import ALL as ALL_LANGUAGES
from caplens.results.drift import DriftResult
from caplens.results.robustness import ALL, RobustnessResult
from caplens.results.scores import ScoreResult

_LEVEL = 0.05
_CHANCE = 90.0
"""Percentile of captions of other images; a caption below it is no better than chance."""
_MOST_METRICS = 3


def headline_of(result: Any) -> tuple[list[str], list[str]]:
    """What was found, and the limits of that, in sentences; none for results that are one table."""
    make = _HEADLINES.get(type(result))
    return ([], []) if make is None else make(result)


def _of_scores(result: ScoreResult) -> tuple[list[str], list[str]]:
    found = result.level_notes()
    for name, levels in list(result.levels.items())[:_MOST_METRICS]:
        at_chance = int(np.count_nonzero(levels.chance < _CHANCE))
        if at_chance:
            share = 100 * at_chance / max(1, len(result.ids))
            found.append(
                f"{name}: {at_chance:,} captions ({share:.1f}%) score no higher than one in ten captions of other images does."
            )
    found += result.lowest_languages()[:_MOST_METRICS]
    if not found:
        found = [f"{name} is {scores.corpus:.3f}." for name, scores in result.metrics.items() if scores.corpus == scores.corpus]
    return found, _limits_of_scores(result)


def _limits_of_scores(result: ScoreResult) -> list[str]:
    signatures = [scores.signature for scores in result.metrics.values()]
    several = len({lang for scores in result.metrics.values() for lang in scores.by_language}) > 1
    limits = {
        f"{result.failed:,} captions could not be scored, and are not in any number here.": result.failed > 0,
        f"{len(result.coverage_warnings):,} captions or images are unlike what the model was trained on.": bool(
            result.coverage_warnings
        ),
        "caplens-mini is a small model: it sees what a photo is about, and misses details, text and counts.": any(
            "|model:caplens-mini" in line for line in signatures
        ),
        "Scores of two languages are not on one scale: what 'caplens calibrate' measures makes them comparable.": several
        and any(name not in result.levels for name in result.metrics),
        "Percentiles compare captions with those that the levels were measured on, in each language its own.": several
        and bool(result.levels),
    }
    return [sentence for sentence, applies in limits.items() if applies]


def _of_comparison(comparison: Comparison) -> tuple[list[str], list[str]]:
    found = []
    for metric, by_system in list(comparison.scores.items())[:_MOST_METRICS]:
        contrasts = [contrast for contrast in comparison.contrasts if contrast.metric == metric]
        order = sorted(by_system, key=lambda system: -by_system[system].value)
        rivals = [system for system in order[1:] if not _is_certain(contrasts, order[0], system)]
        if not rivals:
            found.append(f"By {metric}, {order[0]} is the best of {len(order)} systems, and that is not chance.")
        else:
            found.append(f"By {metric}, {order[0]} has the highest score, but may be no better than {', '.join(rivals[:4])}.")
    limits = [f"All systems are compared on the {comparison.samples:,} captions that each of them has."]
    if not comparison.contrasts:
        limits.append("No test was made.")
    return found, limits


def _is_certain(contrasts: list[SystemContrast], best: str, other: str) -> bool:
    return any({best, other} == {one.first, one.second} and one.p_corrected < _LEVEL for one in contrasts)


def _of_agreement(result: AgreementResult) -> tuple[list[str], list[str]]:
    name = result.headline
    order = sorted(result.results, key=lambda metric: -_defined(result.results[metric][name].value))
    best = result.results[order[0]][name]
    found = [f"{order[0]} agrees best with people: {name} {best.value:.1f} [{best.low:.1f}, {best.high:.1f}]."]
    contrasts = {frozenset((one.first, one.second)): one.p for one in result.contrasts if one.measure == name}
    rivals = [metric for metric in order[1:] if not contrasts.get(frozenset((order[0], metric)), math.nan) < _LEVEL]
    if len(order) > 1:
        certain = "It is better than each other metric, by more than chance."
        found.append(f"It may be no better than {', '.join(rivals[:4])}." if rivals else certain)
    if result.raters is not None and name in result.raters.ceiling:
        found.append(
            f"People agree with each other at {name} {result.raters.ceiling[name]:.1f}: no metric can be expected above."
        )
    limits = [f"{result.images:,} images were judged, under the protocol {result.protocol}."]
    return found, limits


def _defined(value: float) -> float:
    return value if value == value else -math.inf


def _of_robustness(result: RobustnessResult) -> tuple[list[str], list[str]]:
    found = []
    for metric in list(dict.fromkeys(effect.metric for effect in result.effects))[:_MOST_METRICS]:
        effects = [one for one in result.effects if one.metric == metric and one.perturbation != ALL]
        overall = [one for one in effects if one.lang == ALL] or effects
        seen = [one for one in overall if one.accuracy == one.accuracy]
        if seen:
            least, most = (choose(seen, key=lambda one: one.accuracy) for choose in (min, max))
            found.append(
                f"{metric} notices {most.perturbation} best, in {most.accuracy:.0f} of 100 captions, and"
                f" {least.perturbation} least, in {least.accuracy:.0f}; 50 is chance."
            )
    return found, []


def _of_drift(result: DriftResult) -> tuple[list[str], list[str]]:
    found = []
    for drift in result.drifts:
        if drift.lang == ALL_LANGUAGES:
            found.append(
                f"{drift.metric}: new scores are {drift.verdict} (difference {drift.difference:.3f} [{drift.low:.3f},"
                f" {drift.high:.3f}])."
            )
        elif drift.verdict in ("higher", "lower"):
            found.append(f"{drift.metric} in {drift.lang}: {drift.verdict} by {abs(drift.difference):.3f}.")
    return found, ["The captions of the two runs are different ones: what changed may be the images as well."]


def _of_check(result: CheckResult) -> tuple[list[str], list[str]]:
    counts = result.counts()
    found = [
        f"{len(result.captions):,} captions: {counts[Verdict.fix]:,} to fix, {counts[Verdict.look]:,} to look at,"
        f" {counts[Verdict.fine]:,} fine."
    ]
    limits = ["A caption without a remark may still be wrong: details, names and counts are not checked."]
    if result.signature:
        limits.append(f"Captions and images were compared with {result.signature.split('|')[1].partition(':')[2]}.")
    return found, limits


_HEADLINES: dict[type, Callable[[Any], tuple[list[str], list[str]]]] = {
    ScoreResult: _of_scores,
    Comparison: _of_comparison,
    AgreementResult: _of_agreement,
    RobustnessResult: _of_robustness,
    DriftResult: _of_drift,
    CheckResult: _of_check,
}

"""Agreement with one's own raters: captions with ratings of any file, through the same machinery as benchmarks.

Beside correlations, a file with several raters, several captions per image or several systems allows more: how far the raters
agree with each other, which bounds how far any metric can agree with them; pairwise accuracy; and correlations of systems.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from caplens.arrays import Floats
from caplens.benchmarks.evaluate import ScoredData, judge_metrics, score_data
from caplens.benchmarks.raters import rater_agreement
from caplens.benchmarks.rating import AGGREGATIONS, RatedSamples, RatingBenchmark, aggregate
from caplens.data.languages import base_language
from caplens.data.ratings import check_criteria, ratings_by
from caplens.data.sample import Rating, Sample
from caplens.errors import InputError, option
from caplens.metrics.base import Metric
from caplens.results.agreement import UNIT, AgreementResult, PairwiseEstimate
from caplens.stats import RESAMPLES, get_coefficient, tie_calibrated_accuracy

_SHOWN_REASONS = 3
SEVERAL_LANGUAGES = "mul"
"""The ISO 639 code of texts in several languages."""
_MOST_PAIRS = 10_000_000
"""Pairs of captions of one image that are compared; all are in memory."""
_LEAST_SYSTEMS = 3
"""For a correlation between systems to mean anything."""


class OwnRatings(RatingBenchmark):
    """The ratings of a file, as a benchmark."""

    protocols = AGGREGATIONS

    def __init__(self, name: str, coefficients: Sequence[str] | None = None) -> None:
        self.name = name
        if coefficients is not None:
            for coefficient in coefficients:
                get_coefficient(coefficient)
            self.coefficients = tuple(coefficients)

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        raise NotImplementedError


def measure_agreement(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    *,
    name: str = "ratings",
    protocol: str = "mean",
    coefficients: Sequence[str] | None = None,
    criterion: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    lang: str | None = None,
) -> AgreementResult:
    """How well metrics agree with the ratings of `samples`.

    Parameters
    ----------
    samples
        Captions with `ratings`; those without are left out.
    metrics
        What is compared with the ratings.
    name
        What the result calls the data.
    protocol
        How several ratings of a caption are aggregated: mean, median, or expanded (each rating is a data point).
    coefficients
        The correlations to compute, the main one first.
    criterion
        The criterion whose ratings count, where ratings have several.
    """
    if protocol not in AGGREGATIONS:
        raise InputError(f"there is no protocol {protocol!r}; choose from: {', '.join(AGGREGATIONS)}.")
    valid = [sample for sample in samples if not sample.invalid]
    if criterion is None:
        check_criteria(valid, f"Choose one with {option('criterion')}.")
    rated = [(sample, ratings) for sample in valid if (ratings := ratings_by(sample, criterion))]
    if not rated:
        raise InputError(_nothing_rated(valid, criterion))
    data = _data_points(rated, protocol, unrated=len(valid) - len(rated))
    benchmark = OwnRatings(name, coefficients)
    scored = score_data(name, data, data.samples, np.ones(len(data.samples), dtype=np.bool_), metrics)
    if scored.scored.sum() < 2:
        raise InputError("fewer than two captions have both ratings and a score of every metric.")
    result = judge_metrics(benchmark, scored, {}, resamples, seed)
    result.protocol = protocol
    result.lang = _common_language(rated, lang)
    result.failed += len(samples) - len(valid)
    result.warnings = list(
        dict.fromkeys([*data.warnings, *_invalid_warnings(samples), *_rater_warnings(rated), *result.warnings])
    )
    result.raters = rater_agreement([ratings for _, ratings in rated], benchmark.coefficients)
    captions = _scored_captions(scored, {id(sample): ratings for sample, ratings in rated})
    _add_pairwise_accuracy(result, captions)
    _add_system_level(result, captions)
    return result


RatedCaption = tuple[Sample, list[Rating]]


def _common_language(rated: Sequence[RatedCaption], lang: str | None) -> str:
    langs = {base_language(sample.lang or lang or "en") for sample, _ in rated}
    return langs.pop() if len(langs) == 1 else SEVERAL_LANGUAGES


def _invalid_warnings(samples: Sequence[Sample]) -> list[str]:
    reasons = [sample.invalid for sample in samples if sample.invalid]
    if not reasons:
        return []
    more = "; …" if len(reasons) > _SHOWN_REASONS else ""
    return [f"{len(reasons):,} captions were left out: {'; '.join(reasons[:_SHOWN_REASONS])}{more}."]


def _data_points(rated: Sequence[RatedCaption], protocol: str, unrated: int) -> RatedSamples:
    points = [(sample, value) for sample, ratings in rated for value in aggregate([rating.value for rating in ratings], protocol)]
    human = np.array([value for _, value in points], dtype=np.float64)
    if len(np.unique(human)) < 2:
        raise InputError("all ratings are the same, so that nothing can agree with them.")
    warnings = [f"{unrated:,} captions without ratings were left out."] if unrated else []
    return RatedSamples([sample for sample, _ in points], human, warnings=warnings)


def _nothing_rated(samples: Sequence[Sample], criterion: str | None) -> str:
    if criterion is None:
        return "no caption has 'ratings'; add that column: a list of numbers, or of records with value, rater and criterion."
    criteria = sorted({str(rating.criterion) for sample in samples for rating in sample.ratings if rating.criterion})
    return f"no caption has 'ratings' by the criterion {criterion!r}; there are: {', '.join(criteria) or 'none'}."


def _rater_warnings(rated: Sequence["RatedCaption"]) -> list[str]:
    """Say so where raters cannot be told apart."""
    counts = {len(ratings) for _, ratings in rated if any(rating.rater is None for rating in ratings)}
    if len(counts) < 2:
        return []
    return [
        f"ratings name no rater, and captions have {min(counts)} to {max(counts)} of them: alpha and the human ceiling take the"
        " first rating of every caption as one rater's, the second as another's, and so on. Name raters to be exact."
    ]


class _ScoredCaptions(NamedTuple):
    """Each caption once, with the mean of its ratings and its scores."""

    samples: list[Sample]
    human: Floats
    scores: dict[str, Floats]


def _scored_captions(scored: ScoredData, ratings_of: Mapping[int, list[Rating]]) -> _ScoredCaptions:
    rows: dict[int, int] = {}
    for row, sample in enumerate(scored.data.samples):
        if scored.scored[row]:
            rows.setdefault(id(sample), row)
    first_rows = list(rows.values())
    human = np.array([np.mean([rating.value for rating in ratings_of[key]]) for key in rows])
    scores = {metric: column[first_rows] for metric, column in scored.values.items()}
    return _ScoredCaptions([scored.data.samples[row] for row in first_rows], human, scores)


def _add_pairwise_accuracy(result: AgreementResult, captions: _ScoredCaptions) -> None:
    """Where images have several captions."""
    groups = [sample.group for sample in captions.samples]
    if len(set(groups)) == len(groups):
        return
    pairs = sum(count * (count - 1) // 2 for count in Counter(groups).values())
    if pairs > _MOST_PAIRS:
        result.warnings.append(
            f"pairwise accuracy was left out: images have {pairs:,} pairs of captions, more than {_MOST_PAIRS:,}. Does 'image'"
            " name the image of each caption?"
        )
        return
    for metric, scores in captions.scores.items():
        pairwise = tie_calibrated_accuracy(scores, captions.human, groups)
        result.pairwise[metric] = PairwiseEstimate(pairwise.accuracy * UNIT, pairwise.epsilon, pairwise.pairs)


def _add_system_level(result: AgreementResult, captions: _ScoredCaptions) -> None:
    """Correlations of the systems' means, where there are enough systems."""
    rows_by_system: dict[str, list[int]] = {}
    for row, sample in enumerate(captions.samples):
        if sample.system is not None:
            rows_by_system.setdefault(sample.system, []).append(row)
    if len(rows_by_system) < _LEAST_SYSTEMS:
        return
    systems = [rows for _, rows in sorted(rows_by_system.items())]
    human = np.array([captions.human[rows].mean() for rows in systems])
    for metric, scores in captions.scores.items():
        means = np.array([scores[rows].mean() for rows in systems])
        result.system_level[metric] = {name: get_coefficient(name)(means, human) * UNIT for name in result.measures}

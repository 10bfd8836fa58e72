"""What the answers in a study's database say."""

from collections.abc import Mapping

from caplens.errors import InputError
from caplens.human.analysis import (
    Preference,
    delta_correlations,
    delta_pairs,
    quality_by_language,
    side_by_sides,
    strengths_by_language,
)
from caplens.human.database import StudyDatabase
from caplens.human.export import caption_ratings, preferences
from caplens.human.settings import StudyTask
from caplens.results.study import StudyResult

MetricScores = Mapping[str, Mapping[tuple[str, str], float]]
"""Metric -> (language, system) -> corpus score."""


def analyze_answers(
    database: StudyDatabase, scores: MetricScores | None, criterion: str | None, resamples: int, seed: int
) -> StudyResult:
    """Quality by language, or wins and losses with strengths; with `scores`, how well metrics predict people."""
    settings = database.settings
    if criterion is not None and criterion not in settings.criteria:
        raise InputError(f"the study has no criterion {criterion!r}; choose from: {', '.join(settings.criteria)}.")
    result = StudyResult(settings.title, str(settings.task))
    if settings.task is StudyTask.rate:
        result.quality = quality_by_language(caption_ratings(database, criterion), settings.values, resamples, seed)
        if scores:
            result.warnings.append(
                "ratings are compared with metrics by 'caplens agreement', on the file of 'caplens study export'."
            )
        return result
    if settings.task is StudyTask.write:
        raise InputError("captions that people wrote are not analysed; take them with 'caplens study export'.")
    judged = judged_preferences(database)
    result.side_by_sides = side_by_sides(judged, resamples, seed)
    result.strengths = strengths_by_language(judged, resamples, seed)
    if scores:
        result.pairs = delta_pairs(result.side_by_sides, scores)
        result.correlations = delta_correlations(result.pairs)
        missing = len(result.side_by_sides) - len(result.pairs)
        if missing:
            result.warnings.append(f"{missing:,} pairs of systems have no score by each metric.")
    return result


def judged_preferences(database: StudyDatabase) -> list[Preference]:
    """The judgements of a side-by-side study."""
    if database.settings.task is not StudyTask.sidebyside:
        raise InputError(f"this needs a side-by-side study, and the task of this one is {database.settings.task}.")
    return preferences(database)

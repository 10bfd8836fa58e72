"""The sections of the page, one module per kind of result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from caplens.errors import InputError, option
from caplens.report.cases import Case, changes_of, choose, find_cases
from caplens.report.documents import Document, InputPaths
from caplens.report.headlines import headline_of
from caplens.report.sections.agreement import agreement_section, correlation_section, languages_sections
from caplens.report.sections.check import check_section, with_images_of
from caplens.report.sections.comparison import comparison_section, language_section
from caplens.report.sections.drift import drift_section
from caplens.report.sections.job_plan import job_plan_section
from caplens.report.sections.leakage import leakage_section
from caplens.report.sections.moments import moment_plots
from caplens.report.sections.robustness import robustness_section
from caplens.report.sections.runs import runs_sections
from caplens.report.sections.score_summary import score_summary_section
from caplens.report.sections.scores import score_section
from caplens.report.sections.section import Section
from caplens.report.sections.selection import selection_section
from caplens.report.sections.study import study_section
from caplens.report.sections.training import training_section
from caplens.results.agreement import AgreementResult
from caplens.results.base import Result
from caplens.results.check import CheckResult
from caplens.results.comparison import Comparison, LanguageComparison
from caplens.results.drift import DriftResult
from caplens.results.job_plan import JobPlan
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.leakage import LeakageResult
from caplens.results.loading import as_input_error
from caplens.results.robustness import RobustnessResult
from caplens.results.score_summary import ScoreSummary
from caplens.results.scores import ScoreResult
from caplens.results.selection import SelectionResult
from caplens.results.study import StudyResult
from caplens.results.training_log import TrainingLog

__all__ = ["Section", "make_sections"]

_SECTIONS: dict[type, Callable[[Document, Any, list[Case]], Section]] = {
    ScoreResult: score_section,
    Comparison: comparison_section,
    LanguageComparison: language_section,
    AgreementResult: agreement_section,
    LanguageCorrelation: correlation_section,
    RobustnessResult: robustness_section,
    LeakageResult: leakage_section,
    TrainingLog: training_section,
    CheckResult: check_section,
    DriftResult: drift_section,
    StudyResult: study_section,
    SelectionResult: selection_section,
    ScoreSummary: score_summary_section,
    JobPlan: job_plan_section,
}


def make_sections(documents: Sequence[Document], paths: InputPaths, moments: Sequence[str] = ()) -> list[Section]:
    """One section per result, after one for each benchmark that was run in several languages.

    `moments` are ids of captions of videos whose words are shown beside the frames.
    """
    _check_moments(documents, moments)
    sections: list[Section] = runs_sections(documents)
    for run in _in_languages(documents):
        with as_input_error(run[0].path):
            sections += languages_sections([document.result for document in run if isinstance(document.result, AgreementResult)])
    for document in documents:
        with as_input_error(document.path):
            if isinstance(document.result, CheckResult):
                document = replace(document, result=with_images_of(document.result, document, paths))
            cases, why = _cases(document, paths)
            section = _SECTIONS[type(document.result)](document, document.result, cases)
            section.headline, section.limits = headline_of(document.result)
            section.metrics = metrics_of_result(document.result)
            # What the headline says is not said again below a table.
            for table in section.tables:
                table.notes = [note for note in table.notes if note not in section.headline]
            section.without_cases = why
            section.warnings = [
                *(f"{change} Score them again." for change in changes_of(document.result, cases)),
                *section.warnings,
            ]
            if moments and isinstance(document.result, ScoreResult):
                section.plots += moment_plots(document.result, cases, moments)
            section.cases = choose(cases)
            sections.append(section)
    return sections


def metrics_of_result(result: Result) -> list[str]:
    """The metrics that a result is about."""
    if isinstance(result, CheckResult):
        return ["clipscore"] if result.signature else []
    for name in ("metrics", "scores", "results"):
        by_metric = getattr(result, name, None)
        if isinstance(by_metric, dict):
            return list(by_metric)
    return list(dict.fromkeys(effect.metric for effect in result.effects)) if isinstance(result, RobustnessResult) else []


def _cases(document: Document, paths: InputPaths) -> tuple[list[Case], str]:
    """The captions of a result, or why they cannot be shown: a report is made without them too."""
    try:
        return find_cases(document, paths), ""
    except InputError as error:
        return [], str(error)


def _check_moments(documents: Sequence[Document], moments: Sequence[str]) -> None:
    if moments and not any(isinstance(document.result, ScoreResult) for document in documents):
        raise InputError(f"{option('moments')} shows captions of videos that were scored; give a result of 'caplens score'.")


def _in_languages(documents: Sequence[Document]) -> list[list[Document]]:
    """Groups of documents of one run, benchmark and protocol that differ in language."""
    groups: dict[tuple[object, str, str], dict[str, Document]] = {}
    for document in documents:
        result = document.result
        if isinstance(result, AgreementResult):
            groups.setdefault((document.path or document.name, result.benchmark, result.protocol), {})[result.lang] = document
    return [list(group.values()) for group in groups.values() if len(group) > 1]

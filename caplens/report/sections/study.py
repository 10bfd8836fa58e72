"""The section about what people said in a study."""

import numpy as np

from caplens.report import plots
from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Plot, Section
from caplens.results.study import StudyResult


def study_section(document: Document, result: StudyResult, _: list[Case]) -> Section:
    """Quality, wins and losses, strengths, and how differences of metrics go with those of people."""
    judged = sum(entry.ratings for entry in result.quality) + sum(entry.judgements for entry in result.side_by_sides)
    section = Section(document.name, "study", {"title": result.title, "task": result.task, "answers": f"{judged:,}"})
    section.warnings = list(result.warnings)
    section.tables = result.tables()
    if result.pairs:
        human = np.array([pair.human for pair in result.pairs])
        langs = [pair.lang for pair in result.pairs]
        deltas = {metric: np.array([pair.metrics[metric] for pair in result.pairs]) for metric in result.pairs[0].metrics}
        about = "Each point is a pair of systems in one language: differences of the metric by wins - losses of people."
        section.plots.append(Plot("Differences of metrics and of people", plots.differences(human, deltas, langs), about))
    return section

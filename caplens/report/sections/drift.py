"""The section about two runs that share no captions."""

from caplens.report import plots
from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Plot, Section, without_notes
from caplens.results.drift import ALL, DriftResult

_MOST_PANELS = 24


def drift_section(document: Document, result: DriftResult, cases: list[Case]) -> Section:
    """The section about how scores changed."""
    whole = [drift for drift in result.drifts if drift.lang == ALL]
    section = Section(
        document.name,
        "drift",
        {
            "old captions": f"{max((drift.old.captions for drift in whole), default=0):,}",
            "new captions": f"{max((drift.new.captions for drift in whole), default=0):,}",
        },
        warnings=result.warnings,
        tables=[without_notes(result.tables()[0], "Old and new scores")],
    )
    quantiles = {
        drift.metric if drift.lang == ALL else f"{drift.metric}, {drift.lang}": (drift.old_quantiles, drift.new_quantiles)
        for drift in result.drifts[:_MOST_PANELS]
    }
    about = "How many of the captions score lower than a score: a curve further to the right is of higher scores."
    section.plots.append(Plot("Distributions of old and new scores", plots.two_distributions(["old", "new"], quantiles), about))
    return section

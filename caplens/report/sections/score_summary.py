"""The section about captions that were scored partition by partition."""

from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Section
from caplens.results.score_summary import ScoreSummary


def score_summary_section(document: Document, result: ScoreSummary, _: list[Case]) -> Section:
    """Corpus scores; the captions themselves are too many for a page."""
    counts = {"captions": f"{result.captions:,}", "partitions": f"{result.partitions:,}"}
    section = Section(document.name, "scores of partitions", counts)
    section.signatures = [entry.signature for entry in result.metrics.values()]
    section.warnings, section.tables = list(result.warnings), result.tables()
    return section

"""The section about benchmark images that are in the training data."""

from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Section
from caplens.results.leakage import LeakageResult


def leakage_section(document: Document, result: LeakageResult, cases: list[Case]) -> Section:
    """The section about the images that a benchmark shares with a training set."""
    counts = {
        "images": f"{result.images:,}",
        "training images": f"{result.trained:,}",
        "in both": f"{len(result.leaked):,}",
        "contents compared": f"{result.compared:,}",
    }
    return Section(f"{document.name}: {result.benchmark}", "leakage", counts, tables=result.tables())

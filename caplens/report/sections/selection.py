"""The section about images that were chosen for languages."""

from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Plot, Section
from caplens.report.world_map import world_map
from caplens.results.selection import LEVELS, SelectionResult


def selection_section(document: Document, result: SelectionResult, _: list[Case]) -> Section:
    """Where the images were taken."""
    about = {"images": f"{len(result.images):,}", "languages": f"{len(result.counts()):,}"}
    section = Section(document.name, "selection", about)
    section.warnings = list(result.warnings)
    section.tables = result.tables()
    places = {level: [(one.latitude, one.longitude) for one in result.images if one.level == level] for level in LEVELS}
    note = "Each point is an image, by how near to where its language is spoken it was taken."
    section.plots.append(Plot("Where the images were taken", world_map(places), note))
    return section

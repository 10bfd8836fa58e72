"""The section about what a job takes and costs."""

from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Section
from caplens.results.job_plan import JobPlan


def job_plan_section(document: Document, result: JobPlan, _: list[Case]) -> Section:
    """Its size, and hours and money by machine."""
    section = Section(document.name, "the plan of a job", {"captions": f"{result.size.rows:,}"})
    section.warnings, section.tables = list(result.warnings), result.tables()
    return section

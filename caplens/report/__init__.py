"""Reports: tables in several formats, plots, and the HTML page."""

from caplens.report.latex_tables import latex, latex_document
from caplens.report.tables import delimited, markdown

__all__ = ["delimited", "latex", "latex_document", "markdown"]

"""Reports: tables in several formats, plots, and the HTML page."""

from caplens.report.tables import delimited, latex, markdown

__all__ = ["delimited", "latex", "markdown"]

"""Results as documents: tables in several forms, plots, and the HTML page."""

from caplens.report.tables import delimited, latex, markdown

__all__ = ["delimited", "latex", "markdown"]

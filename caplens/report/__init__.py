"""Views of results: tables in several forms."""

from caplens.report.tables import Table, delimited, latex, markdown

__all__ = ["Table", "delimited", "latex", "markdown"]

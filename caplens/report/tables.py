"""Tables as Markdown and CSV."""

import csv
import io
import re

from caplens.data.formats.formulas import guarded
from caplens.results.table import Table
from caplens.terminal import in_one_line

_MARKDOWN_SPECIAL = re.compile(r"[\\|<`]|(?<=\])\(")
"""What would end a cell, or begin HTML, code or the address of a link."""


def markdown(table: Table) -> str:
    """Format a table as Markdown, with its title above and its notes below.

    Parameters
    ----------
    table
        The table; numbers are rounded to `table.digits`.

    Returns
    -------
    str
        A pipe table, ending in a newline.
    """
    rule = ["---:" if table.is_number(index) else "---" for index in range(len(table.columns))]
    columns, *rows = [
        [_MARKDOWN_SPECIAL.sub(r"\\\g<0>", table.shown(cell)) for cell in row] for row in (table.columns, *table.rows)
    ]
    for row, column in table.bold:
        rows[row][column] = f"**{rows[row][column]}**"
    lines = ["| " + " | ".join(row) + " |" for row in (columns, rule, *rows)]
    heading = [f"**{in_one_line(table.title)}**", ""] if table.title else []
    lines_below = [in_one_line(note) for note in table.notes]
    notes = ["", *(f"`{note}`" if "|" in note else note for note in lines_below)] if table.notes else []
    return "\n".join([*heading, *lines, *notes]) + "\n"


def delimited(table: Table, delimiter: str = ",") -> str:
    """Format a table as CSV, without title and notes.

    Parameters
    ----------
    table
        The table; numbers keep full precision, and missing values are empty.
    delimiter
        Between cells: a comma, or a tab for TSV.

    Returns
    -------
    str
        A header line and one line per row.
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow([guarded(column) for column in table.columns])
    writer.writerows(["" if cell is None or cell != cell else guarded(cell) for cell in row] for row in table.rows)
    return out.getvalue()

"""Tables as Markdown, LaTeX and CSV."""

import csv
import io
import re

from caplens.data.formats.formulas import guarded
from caplens.results.table import Table
from caplens.terminal import in_one_line

_MARKDOWN_SPECIAL = re.compile(r"[\\|<`]|(?<=\])\(")
"""What would end a cell, or begin HTML, code or the address of a link."""
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


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
    lines = ["| " + " | ".join(row) + " |" for row in (columns, rule, *rows)]
    heading = [f"**{in_one_line(table.title)}**", ""] if table.title else []
    lines_below = [in_one_line(note) for note in table.notes]
    notes = ["", *(f"`{note}`" if "|" in note else note for note in lines_below)] if table.notes else []
    return "\n".join([*heading, *lines, *notes]) + "\n"


def latex(table: Table) -> str:
    """Format a table as a LaTeX `tabular`, with title and notes as comments.

    Parameters
    ----------
    table
        The table; numbers are rounded to `table.digits`.

    Returns
    -------
    str
        A `tabular` with the rules of the booktabs package, ending in a newline.
    """
    alignment = "".join("r" if table.is_number(index) else "l" for index in range(len(table.columns)))
    body = [" & ".join(_escaped(table.shown(cell)) for cell in row) + r" \\" for row in table.rows]
    heading = " & ".join(_escaped(table.shown(column)) for column in table.columns) + r" \\"
    notes = [f"% {in_one_line(note)}" for note in (table.title, *table.notes) if note]
    begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
    return "\n".join([*notes, begin, r"\toprule", heading, r"\midrule", *body, r"\bottomrule", end]) + "\n"


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


def _escaped(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)

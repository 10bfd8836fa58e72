"""A table, and the forms it can be written in."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

Cell = str | float | int | None

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


@dataclass
class Table:
    """Rows of cells under named columns. `notes` go below the table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: list[str] = field(default_factory=list)
    digits: int = 3

    def shown(self, cell: Cell) -> str:
        """A cell for people: numbers rounded, nothing as a dash."""
        if cell is None or cell != cell:
            return "–"
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)

    def is_number(self, column: int) -> bool:
        return all(row[column] is None or isinstance(row[column], int | float) for row in self.rows)


def markdown(table: Table) -> str:
    rule = ["---:" if table.is_number(index) else "---" for index in range(len(table.columns))]
    columns, *rows = [[table.shown(cell).replace("|", r"\|") for cell in row] for row in (table.columns, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (columns, rule, *rows)]
    heading = [f"**{table.title}**", ""] if table.title else []
    notes = ["", *(f"`{note}`" if "|" in note else note for note in table.notes)] if table.notes else []
    return "\n".join([*heading, *lines, *notes]) + "\n"


def latex(table: Table) -> str:
    """A `tabular` with the rules of the booktabs package."""
    alignment = "".join("r" if table.is_number(index) else "l" for index in range(len(table.columns)))
    body = [" & ".join(_escaped(table.shown(cell)) for cell in row) + r" \\" for row in table.rows]
    heading = " & ".join(_escaped(column) for column in table.columns) + r" \\"
    notes = [f"% {note}" for note in (table.title, *table.notes) if note]
    begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
    return "\n".join([*notes, begin, r"\toprule", heading, r"\midrule", *body, r"\bottomrule", end]) + "\n"


def delimited(table: Table, delimiter: str = ",") -> str:
    """CSV with full precision."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(["" if cell is None or cell != cell else cell for cell in row] for row in table.rows)
    return out.getvalue()


def _escaped(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)

"""A table: what every result is shown as, on a terminal, in Python and in documents."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from caplens.terminal import in_one_line, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

Cell = str | float | int | None
LEVEL = "95%"
"""Of every interval."""
REPRODUCE = "To reproduce:"
"""The note before signatures."""
_TEXT_WIDTH = 160
_SHORT = 24
"""Cells up to this long are never broken into lines."""


@dataclass
class Table:
    """Rows of cells under named columns. `notes` go below the table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: list[str] = field(default_factory=list)
    digits: int = 3
    bold: frozenset[tuple[int, int]] = frozenset()
    """Row and column of cells that are bold where the format has that."""

    def shown(self, cell: Cell) -> str:
        """A cell for people: numbers rounded, a missing value as a dash."""
        if cell is None or cell != cell:
            return "–"
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else in_one_line(str(cell))

    def is_number(self, column: int) -> bool:
        return all(row[column] is None or isinstance(row[column], int | float) for row in self.rows)


def render_text(tables: Sequence[Table]) -> str:
    """Tables as plain text."""
    from rich.console import Console

    out = io.StringIO()
    print_tables(Console(file=out, width=_TEXT_WIDTH), tables)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n"


def print_tables(console: "Console", tables: Sequence[Table]) -> None:
    """Tables on a terminal."""
    from rich.text import Text

    for table in tables:
        rich_table = to_rich(table)
        if table.title:
            console.print(Text(visible(table.title), style="italic"), soft_wrap=True)
            rich_table.title = None
        # A line that the terminal breaks is easier to read than a number that was cut.
        needed = sum((column.min_width or _SHORT) + 3 for column in rich_table.columns) + 1
        width = console.width
        console.width = max(width, needed)
        console.print(rich_table, crop=False, soft_wrap=needed > width)
        console.width = width
        for note in table.notes:
            console.print(Text(visible(note), style="dim"), soft_wrap=True)


def to_rich(table: Table) -> "RichTable":
    """The table as rich, the terminal library, has it."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich_table = RichTable(title=Text(visible(table.title)) if table.title else None, box=box.SIMPLE_HEAD, title_justify="left")
    for index, column in enumerate(table.columns):
        short = all(len(table.shown(row[index])) <= _SHORT for row in table.rows)
        column = table.shown(column)
        widest = max([len(column), *(len(table.shown(row[index])) for row in table.rows)])
        rich_table.add_column(
            Text(column),
            justify="right" if table.is_number(index) else "left",
            no_wrap=short,
            overflow="fold",
            min_width=widest if short else None,
        )
    for row in table.rows:
        rich_table.add_row(*(Text(table.shown(cell)) for cell in row))
    return rich_table


def with_interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def shown_p(p: float) -> str:
    """A p-value for people."""
    if p != p:
        return "–"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"

"""CSV and TSV with a header line; lists are JSON inside their cell, and text that looks like a formula is guarded."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from caplens.data.aliases import folded
from caplens.data.columns import ColumnChoice, Columns, knows_columns
from caplens.data.files import Place, Source, max_line_bytes, too_long
from caplens.data.formats.formulas import guarded, unguarded
from caplens.data.rows import FIELDS, Row, cells_from_sample, row_from_cells
from caplens.data.sample import Sample
from caplens.errors import InputError


def delimiter_of(header: str, choice: ColumnChoice | None = None) -> str | None:
    """The separator of a header line that names the columns of samples, or those chosen; None if it does not."""
    chosen = {folded(column) for column in (choice or {}).values()}
    for delimiter in "\t,;":
        try:
            names = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > 1 and (knows_columns(names) or chosen & set(map(folded, names))):
            return delimiter
    return None


class RowLines:
    """The lines of a table, with a limit on a row: a quote that is not closed makes one cell of the whole file."""

    def __init__(self, source: Source) -> None:
        self._lines, self._path, self._limit = source.lines(), source.path, max_line_bytes()
        self._first: int | None = None
        self._size = 0
        csv.field_size_limit(self._limit)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if self._first is None:
            self._first = number
        self._size += len(line)
        if self._size > self._limit:
            raise too_long(Place(self._path, self._first), "the row", self._limit)
        return line

    def end_row(self) -> None:
        """Count the lines of the next row."""
        self._first, self._size = None, 0


def read_rows(source: Source, columns: Columns | None = None) -> Iterator[tuple[Place, Row]]:
    lines = RowLines(source)
    first = next(lines)
    columns = columns or Columns()
    delimiter = delimiter_of(first, columns.choice) or ","
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    start = 1
    try:
        header = columns.renamed(next(reader), Place(source.path, 1))
        repeated = {name for name, count in Counter(header).items() if count > 1}
        if repeated:
            raise InputError(f"{Place(source.path, 1)}: the column {min(repeated)!r} appears twice. Rename one of them.")
        start = reader.line_num + 1
        for cells in reader:
            place, start = Place(source.path, start), reader.line_num + 1
            lines.end_row()
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{place}: {len(cells)} cells where the header has {len(header)}. Put text that holds the separator"
                    ' in "double quotes".'
                )
            if delimiter == "\t" and _looks_swallowed(cells):
                raise InputError(
                    f"{place}: a quote at the start of a cell runs over several lines. Where quotes are part of the text, put the"
                    ' cell in "double quotes" and double the quotes inside it.'
                )
            yield place, row_from_cells(dict(zip(header, map(unguarded, cells), strict=True)), place)
    except csv.Error as error:
        raise InputError(
            f"{Place(source.path, start)}: broken table ({error}). Put text with quotes, separators or line ends in"
            ' "double quotes", and double the quotes inside it.'
        ) from None


def _looks_swallowed(cells: Iterable[str]) -> bool:
    """In a TSV, a stray quote makes one cell of several rows; so no cell may hold both a tab and a line end."""
    return any("\t" in cell and "\n" in cell for cell in cells)


def write(samples: Iterable[Sample], path: Path, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, [*FIELDS, "meta"], restval="", delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        for sample in samples:
            cells = cells_from_sample(sample)
            if delimiter == "\t" and _looks_swallowed(cells.values()):
                raise InputError(
                    f"sample {sample.id!r}: TSV cannot hold a text with both a tab and a line end. Choose CSV or JSONL."
                )
            writer.writerow({name: guarded(cell) for name, cell in cells.items()})

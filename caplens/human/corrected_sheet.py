"""A sheet with other captions in it: its columns, order and formats stay, and what was found stands to the right."""

import csv
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from caplens.data.encodings import as_utf8
from caplens.data.files import Place, Source
from caplens.data.formats import spreadsheet
from caplens.data.formats.delimited import delimiter_of
from caplens.data.formats.formulas import guarded, unguarded
from caplens.errors import InputError
from caplens.libraries import require

FORMATS = {".xlsx": ".xlsx", ".csv": ".csv", ".tsv": ".csv"}
"""Suffix of a sheet -> that of the corrected one."""


_NUMBER = re.compile("[+-][0-9]+(?:[.,][0-9]+)?")


class SheetChange(NamedTuple):
    """Another caption in place of the one in a row, and cells to the right of all columns."""

    before: str
    after: str
    notes: Sequence[str]


def write_corrected(sheet: Path, target: Path, changes: Mapping[int, Sequence[SheetChange]], titles: Sequence[str]) -> None:
    """Write a sheet again, in its own format.

    Parameters
    ----------
    sheet
        An Excel, CSV or TSV file.
    target
        What to write.
    changes
        Number of the row or, in CSV, of its first line -> its changes, one for each caption of the row.
    titles
        Of the columns to the right.

    Raises
    ------
    InputError
        If a caption is not in a cell of its own.
    """
    cells = _Workbook(sheet) if FORMATS[sheet.suffix.lower()] == ".xlsx" else _Table(sheet)
    width = cells.width
    for column, title in enumerate(titles, width):
        cells.put(cells.header, column, title)
    for number, of_row in changes.items():
        texts = [unguarded(text).strip() for text in cells.texts(number)]
        for change in of_row:
            if change.after != change.before:
                if texts.count(change.before.strip()) != 1:
                    raise InputError(f"{Place(sheet, number, 'row')}: the caption is not in a cell of its own.")
                cells.put(number, texts.index(change.before.strip()), change.after)
        for column, notes in enumerate(zip(*(change.notes for change in of_row), strict=True), width):
            cells.put(number, column, "; ".join(dict.fromkeys(note for note in notes if note)))
    cells.save(target)


class _Workbook:
    """The sheet of an Excel file that has captions. Columns are counted from 0."""

    def __init__(self, path: Path) -> None:
        openpyxl = require("openpyxl", "Writing Excel files", "excel")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._book = openpyxl.load_workbook(path)
        self._sheet, self.header = spreadsheet.sheet_of(path, self._book)
        # Cells that have a format only do not count.
        filled = (cell.column for row in self._sheet.iter_rows() for cell in row if cell.value is not None)
        self.width = max(filled, default=0)

    def texts(self, number: int) -> list[str]:
        return [spreadsheet.text_of(cell.value) for cell in self._sheet[number]]

    def put(self, number: int, column: int, text: str) -> None:
        self._sheet.cell(number, column + 1).value = guarded(spreadsheet.storable(text))

    def save(self, target: Path) -> None:
        # Openpyxl does not keep the values of formulas.
        self._book.calculation.fullCalcOnLoad = True
        self._book.save(target)


class _Table:
    """A CSV or TSV file. Rows are known by their first line, columns are counted from 0."""

    header = 1

    def __init__(self, path: Path) -> None:
        with Source(as_utf8(path)) as source:
            text = source.text()
        self._delimiter = delimiter_of(text.partition("\n")[0]) or ","
        self._rows: dict[int, list[str]] = {}
        self._put: set[tuple[int, int]] = set()
        reader, first = csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, strict=True), 1
        for row in reader:
            self._rows[first] = row
            first = reader.line_num + 1
        self.width = len(self._rows[self.header])

    def texts(self, number: int) -> list[str]:
        return self._rows[number][: self.width]

    def put(self, number: int, column: int, text: str) -> None:
        row = self._rows[number]
        row += [""] * (column + 1 - len(row))
        # What somebody typed may begin with an apostrophe of its own.
        row[column] = guarded(text)
        self._put.add((number, column))

    def _kept(self, cell: str, place: tuple[int, int]) -> str:
        """A cell that nobody changed is guarded where it could run; a number cannot."""
        if place in self._put or _NUMBER.fullmatch(cell):
            return cell
        return str(guarded(unguarded(cell)))

    def save(self, target: Path) -> None:
        # Spreadsheets take a file for UTF-8 by its mark.
        with target.open("w", encoding="utf-8-sig", newline="") as file:
            rows = csv.writer(file, delimiter=self._delimiter)
            rows.writerows(
                [self._kept(cell, (number, column)) for column, cell in enumerate(row)]
                for number, row in self._rows.items()
                if row
            )

"""Excel workbooks (.xlsx), through openpyxl (the `excel` extra): the first sheet that has a table, and plain tables written."""

import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from caplens.data.columns import Columns, knows_columns
from caplens.data.files import Place, max_line_bytes, open_regular, too_long
from caplens.data.formats.formulas import guarded, unguarded
from caplens.data.formats.json_document import to_json
from caplens.data.rows import FIELDS, Row, cells_from_sample, of_one_table, row_from_cells
from caplens.data.sample import Sample
from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.progress import logger
from caplens.terminal import visible

MAGIC = b"PK\x03\x04"
_WORKBOOK = "xl/workbook.xml"
_UNPACKED_PER_LINE = 12
"""How many times larger than a line all parts of a workbook may be, unpacked."""
_LONGEST_CELL = 32_767
_MOST_ROWS = 1_048_575
_HEADER_ROWS = 20
"""Rows among which the header is looked for: titles may stand above it."""
_STREAMED = ("xl/worksheets/", "xl/sharedStrings")
"""Parts that are read a row or a text at a time."""
_SHEETS = "xl/worksheets/"
_LONGEST_TEXT = 4 << 20
"""Bytes without an element; a cell holds 32,767 characters."""
_PLACE = re.compile(rb"<(?:\w+:)?(?:row|c)\s[^<>]*?\br\s*=\s*[\"']([A-Z]*)([0-9]+)[\"'][^<>]*>")
_END = re.compile(rb"(?:row|si)>")
_MOST_IN_ROW, _MOST_ELEMENTS = 2_000_000, 300_000
"""Elements of a row, and of a part that is kept whole."""
_MOST_COLUMNS = 16_384
_CHUNK, _LONGEST_WORD = 1 << 20, 16
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_WIDTHS = {"caption": 60, "reasons": 60, "id": 18, "image": 24}
_WRAPPED = frozenset({"caption", "reasons"})
_FEATURE, _EXTRA = "Reading or writing Excel files", "excel"


def is_workbook(path: Path) -> bool:
    """Whether a zip file is an Excel workbook."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _WORKBOOK in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def read_rows(path: Path, columns: Columns | None = None) -> Iterator[tuple[Place, Row]]:
    """The rows below the header of the first visible sheet whose columns are those of captions."""
    columns = columns or Columns()
    _check_size(path)
    openpyxl = require("openpyxl", _FEATURE, _EXTRA)
    book = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            yield from _rows_of(path, book, columns)
    except InputError:
        raise
    except Exception as error:
        # openpyxl raises errors of many types for workbooks that are damaged.
        raise InputError(f"{path}: this workbook cannot be read ({reason(error)}). Save it again, or as CSV.") from None
    finally:
        if book is not None:
            book.close()


def _check_size(path: Path) -> None:
    """A small workbook can unpack to gigabytes."""
    limit = _UNPACKED_PER_LINE * max_line_bytes()
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            size = sum(part.file_size for part in archive.infolist())
            if size <= limit:
                for part in archive.infolist():
                    _check_part(path, archive, part)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: this workbook is damaged ({error}). Save it again.") from None
    if size > limit:
        raise too_long(Place(path), "what the workbook holds", limit)


def _check_part(path: Path, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """An XML file of a few bytes can define entities that take gigabytes, or hold elements that do."""
    streamed, elements, before = part.filename.startswith(_STREAMED), 0, b""
    order = _CellOrder(path) if part.filename.startswith(_SHEETS) else None
    text = 0
    with archive.open(part) as file:
        while chunk := file.read(_CHUNK):
            text = len(chunk) - 1 - chunk.rfind(b"<") if b"<" in chunk else text + len(chunk)
            if text > _LONGEST_TEXT:
                raise InputError(f"{path}: {part.filename} has a text of more than {_LONGEST_TEXT:,} bytes. Save it as CSV.")
            if order is not None:
                order.add(chunk)
            # What is looked for may lie across two chunks.
            window = before + chunk
            if b"<!DOCTYPE" in window or b"<!ENTITY" in window:
                raise InputError(f"{path}: {part.filename} defines entities, which no workbook needs. Save it again.")
            first, *others = (piece.count(b"<") for piece in (_END.split(chunk) if streamed else [chunk]))
            if max([elements + first, *others]) > (_MOST_IN_ROW if streamed else _MOST_ELEMENTS):
                raise InputError(f"{path}: {part.filename} has more elements than a workbook has. Save it as CSV.")
            elements = others[-1] if others else elements + first
            before = chunk[-_LONGEST_WORD:]


def sheet_of(path: Path, book: Any) -> tuple[Any, int]:
    """The sheet of an open workbook that rows are read from, and the number of its header."""
    sheet, (number, _) = _captions_in(path, book, Columns())
    return sheet, number


def _captions_in(path: Path, book: Any, columns: Columns) -> tuple[Any, tuple[int, list[str]]]:
    sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or list(book.worksheets)
    for sheet in sheets:
        header = _header_of(sheet, columns)
        if header is not None:
            if len(sheets) > 1:
                logger.info(f"{path.name}: the sheet {visible(sheet.title)!r} is read.")
            return sheet, header
    raise InputError(
        f"{path}: no sheet has columns of captions. The first line should name them, among them 'caption' (or Alt-Text,"
        " description, …)."
    )


class _CellOrder:
    """Rows and cells of a sheet, each after the one before: readers drop those that come again, or too late."""

    def __init__(self, path: Path) -> None:
        self._path, self._rest = path, b""
        self._last = (0, 0, b"")

    def add(self, chunk: bytes) -> None:
        window = self._rest + chunk
        for match in _PLACE.finditer(window):
            letters, row = match[1], int(match[2])
            place = (row, len(letters), letters)
            if place <= self._last:
                what = f"{letters.decode()}{row}" if letters else f"row {row}"
                raise InputError(f"{self._path}: {what} of the sheet comes twice, or too late. Save the workbook again.")
            self._last = place
        # An element may go on in the next chunk.
        _, sign, rest = window.rpartition(b"<")
        self._rest = sign + rest if sign and b">" not in rest else b""


def _rows_of(path: Path, book: Any, columns: Columns) -> Iterator[tuple[Place, Row]]:
    sheet, header = _captions_in(path, book, columns)
    number, cells = header
    names = _column_names(cells, columns, Place(path, number, "row"))
    width = len(names)
    for place_number, row in enumerate(sheet.iter_rows(min_row=number + 1, max_col=width, values_only=True), number + 1):
        if place_number > _MOST_ROWS + 1:
            raise InputError(
                f"{path}: a sheet has {_MOST_ROWS + 1:,} rows at most; this one says that it has more. Save it again."
            )
        texts = [text_of(value) for value in row]
        if any(texts):
            place = Place(path, place_number, "row")
            padded = [*texts, *[""] * (width - len(texts))]
            yield place, row_from_cells(dict(zip(names, map(unguarded, padded), strict=True)), place)


def _column_names(cells: Sequence[str], columns: Columns, place: Place) -> list[str]:
    """The names of the columns up to the last one that has a name."""
    width = max(number for number, cell in enumerate(cells, 1) if cell)
    if width > _MOST_COLUMNS:
        raise InputError(f"{place}: a sheet has {_MOST_COLUMNS:,} columns at most, and this one {width:,}. Save it again.")
    names = columns.renamed([cell or f"column {number}" for number, cell in enumerate(cells[:width], 1)], place)
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"{place}: the column {repeated!r} appears twice. Rename one of them.")
    return names


def _header_of(sheet: Any, columns: Columns) -> tuple[int, list[str]] | None:
    """The number and cells of the first row that names columns of captions, or those chosen."""
    if hasattr(sheet, "reset_dimensions"):
        # What a file says of its own size may be wrong.
        sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(max_row=_HEADER_ROWS, values_only=True), 1):
        cells = [text_of(value).strip() for value in row]
        if any(cells) and (knows_columns(cells) or set(columns.choice.values()) & set(cells)):
            return number, cells
    return None


def text_of(value: Any) -> str:
    """A cell as text: whole numbers without a point, dates as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def write(samples: Iterable[Sample], path: Path) -> None:
    """Samples with lists as JSON inside their cell, as in CSV."""
    rows = (_writable(cells_from_sample(sample), sample.id) for sample in samples)
    write_rows(({name: row.get(name, "") for name in (*FIELDS, "meta")} for row in rows), path)


def _writable(cells: Mapping[str, Any], sample: str) -> Mapping[str, Any]:
    """An error for a character that a cell cannot hold: without it, two ids may be one."""
    match = next((match for cell in cells.values() if isinstance(cell, str) and (match := _ILLEGAL.search(cell))), None)
    if match is not None:
        raise InputError(f"sample {sample!r}: Excel cannot hold the character U+{ord(match[0]):04X}. Write CSV or JSONL.")
    return cells


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """A workbook of one sheet, whose first line stays in view and has filters."""
    openpyxl = require("openpyxl", _FEATURE, _EXTRA)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("captions")
    sheet.freeze_panes = "A2"
    try:
        _append_rows(openpyxl, sheet, rows)
    except InputError:
        # What openpyxl began it would complain about at the end of the program.
        sheet.close()
        raise
    book.save(path)


def _append_rows(openpyxl: Any, sheet: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    styles, letters = (require(f"openpyxl.{name}", _FEATURE, _EXTRA) for name in ("styles", "utils"))
    for number, row in enumerate(of_one_table(rows)):
        if not number:
            _write_header(openpyxl, styles, sheet, list(row))
        if number >= _MOST_ROWS:
            raise InputError(f"a sheet holds {_MOST_ROWS:,} rows at most. Write CSV or Parquet.")
        sheet.append([_styled(openpyxl, styles, sheet, name, _cell(value, number + 2)) for name, value in row.items()])
        sheet.auto_filter.ref = f"A1:{letters.get_column_letter(len(row))}{number + 2}"


def _styled(openpyxl: Any, styles: Any, sheet: Any, name: str, value: Any) -> Any:
    """Long texts are wrapped in their cell."""
    if name not in _WRAPPED or not isinstance(value, str):
        return value
    cell = openpyxl.cell.WriteOnlyCell(sheet, value=value)
    cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
    return cell


def _write_header(openpyxl: Any, styles: Any, sheet: Any, names: Sequence[str]) -> None:
    letters = require("openpyxl.utils", _FEATURE, _EXTRA)
    cells = []
    for place, name in enumerate(names, 1):
        sheet.column_dimensions[letters.get_column_letter(place)].width = _WIDTHS.get(name, 14)
        cell = openpyxl.cell.WriteOnlyCell(sheet, value=guarded(name))
        cell.font = styles.Font(bold=True)
        cells.append(cell)
    sheet.append(cells)


def _cell(value: Any, row: int) -> Any:
    """Text is guarded as in CSV; what a cell cannot hold is an error."""
    if value is None or value != value:
        return None
    if isinstance(value, list | dict):
        value = to_json(value)
    if isinstance(value, date | time):
        # A cell has no time zone.
        return value.isoformat() if getattr(value, "tzinfo", None) is not None else value
    if isinstance(value, bool | int | float | Decimal):
        return value
    if not isinstance(value, str):
        raise InputError(f"row {row}: a cell of Excel holds text or numbers, not {type(value).__name__}. Leave the column out.")
    if len(value) > _LONGEST_CELL:
        raise InputError(
            f"row {row}: a cell of Excel holds {_LONGEST_CELL:,} characters, not {len(value):,}. Write CSV or JSONL."
        )
    return guarded(storable(value))


def storable(text: str, instead: str = "\ufffd") -> str:
    """A text with another character in place of each that a cell cannot hold."""
    return _ILLEGAL.sub(instead, text)

"""Finding and reading the files of data sets."""

import ast
import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from caplens.data.files import Place, Source
from caplens.data.formats import jsonl
from caplens.data.formats.delimited import RowLines
from caplens.data.formats.formulas import unguarded
from caplens.data.formats.json_document import read_document
from caplens.errors import InputError

K = TypeVar("K")
V = TypeVar("V")
_PYTHON_ITEM = r"""(?:[uU]?'(?:[^'\\\n]|\\.)*+'|[uU]?"(?:[^"\\\n]|\\.)*+"|-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?)"""
_PYTHON_LIST = re.compile(rf"\s*\[\s*(?:{_PYTHON_ITEM}(?:\s*,\s*{_PYTHON_ITEM})*+\s*,?\s*)?\]\s*")
"""A list of texts and numbers, as Python writes it."""
_COMPRESSION_SUFFIXES = ("", ".gz", ".xz", ".bz2")


def find_file(folder: Path, names: Sequence[str], what: str, where: str) -> Path:
    """Return the first of `names` that exists in `folder`, compressed or not.

    If none does, the error says what is missing (`what`) and where to get it (`where`).
    """
    for name in names:
        for suffix in _COMPRESSION_SUFFIXES:
            if (folder / f"{name}{suffix}").is_file():
                return folder / f"{name}{suffix}"
    raise InputError(f"{folder}: {what} is missing. Put {' or '.join(names)} (compressed or not) there. {where}")


def read_fields(path: Path, count: int, *, tabs_in_last: bool = False) -> list[tuple[Place, list[str]]]:
    """Read the `count` tab-separated fields of each line, with the line's place. Empty lines are skipped.

    With `tabs_in_last` the last field is the rest of the line, because some captions contain a tab.
    """
    rows = []
    with Source(path) as source:
        for line_number, line in source.lines():
            fields = line.rstrip("\r\n").split("\t", count - 1 if tabs_in_last else -1)
            if fields == [""]:
                continue
            place = Place(path, line_number)
            if len(fields) != count:
                raise InputError(f"{place}: {len(fields)} tab-separated fields where {count} are expected.")
            rows.append((place, fields))
    return rows


Record = Mapping[str, Any]


def read_json(path: Path, kind: type = dict) -> Any:
    """Read a JSON document and check that it is an object (`dict`) or a list (`list`)."""
    with Source(path) as source:
        document = read_document(source)
    if not isinstance(document, kind):
        raise InputError(
            f"{path}: this should be a JSON {'object' if kind is dict else 'list'}; it is not the file expected here."
        )
    return document


def read_records(path: Path) -> Iterator[tuple[Place, Record]]:
    """Read the rows of a file with named columns: CSV, TSV, JSONL or a JSON list."""
    with Source(path) as source:
        first_line = next((line.lstrip("\ufeff").lstrip() for _, line in source.lines() if line.strip()), "")
    if first_line.startswith("["):
        for number, record in enumerate(read_json(path, list), 1):
            if not isinstance(record, dict):
                raise InputError(f"{path}, entry {number}: an object is expected.")
            yield Place(path, number, "entry"), record
        return
    with Source(path) as source:
        if first_line.startswith("{"):
            yield from jsonl.read_rows(source)
            return
        delimiter = max("\t;,", key=first_line.count)
        lines = RowLines(source)
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
        try:
            names = list(reader.fieldnames or [])
            if len(set(names)) < len(names):
                raise InputError(f"{Place(path, 1)}: a column appears twice. Rename one of them.")
            for row in reader:
                lines.end_row()
                if None in row or None in row.values():
                    raise InputError(
                        f"{Place(path, reader.line_num)}: the number of cells is not that of the header, {len(names)}. Put text"
                        ' that holds the separator in "double quotes".'
                    )
                yield Place(path, reader.line_num), {name: unguarded(cell) for name, cell in row.items()}
        except csv.Error as error:
            raise InputError(f"{Place(path, reader.line_num)}: broken table ({error}).") from None


def read_cells(source: Source, delimiter: str) -> Iterator[tuple[Place, list[str]]]:
    """The cells of each row of a table whose rows are lines, with the row's place. Quotes inside a cell need not be doubled."""
    lines = RowLines(source)
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for number, cells in enumerate(reader, 1):
            lines.end_row()
            place = Place(source.path, number)
            if reader.line_num != number:
                raise InputError(f"{place}: a quote is opened here and not closed on this line.")
            yield place, cells
    except csv.Error as error:
        raise InputError(f"{Place(source.path, reader.line_num)}: broken table ({error}).") from None


def field(record: Record, names: Sequence[str], place: Place) -> Any:
    """Return the value of the first of `names` that the record has a value for."""
    for name in names:
        if record.get(name) is not None:
            return record[name]
    if empty := [name for name in names if name in record]:
        raise InputError(f"{place}: {' and '.join(map(repr, empty))} has no value.")
    raise InputError(
        f"{place}: there is no {' or '.join(repr(name) for name in names)}; there are: {', '.join(map(str, record))}."
    )


def add_once(table: dict[K, V], key: K, value: V, place: Place | Path) -> None:
    """Add an entry to a table; an error if there is another value for the same key."""
    if table.setdefault(key, value) != value:
        raise InputError(f"{place}: there is another value for {key!r} before. Remove one of them.")


def text(value: Any, place: Place | Path) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: a text is expected, not {str(value)[:40]!r}.")
    return value


def texts(value: Any, place: Place | Path) -> tuple[str, ...]:
    """A list of texts, or one text. In tables the list is written as JSON or as a Python literal. Blank texts are dropped."""
    items = _as_list(value, place)
    if not isinstance(items, list | tuple) or not all(isinstance(text, str) for text in items):
        raise InputError(f"{place}: a list of texts is expected, not {str(value)[:40]!r}.")
    return tuple(text for text in items if text.strip())


def numbers(value: Any, place: Place | Path) -> list[float]:
    """Ratings: a number or a list of them."""
    try:
        ratings = [float(item) for item in _as_list(value, place)]
    except (TypeError, ValueError, OverflowError):
        ratings = []
    if not ratings or not all(math.isfinite(rating) for rating in ratings):
        raise InputError(f"{place}: {value!r} is not a rating.")
    return ratings


def _no_list(value: str, place: Place | Path) -> NoReturn:
    raise InputError(f"{place}: this is not a list, neither in JSON nor in Python: {value[:40]!r}.") from None


def _as_list(value: Any, place: Place | Path) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            try:
                return ast.literal_eval(value.strip()) if _PYTHON_LIST.fullmatch(value) else _no_list(value, place)
            except (ValueError, SyntaxError, MemoryError):
                return _no_list(value, place)
    return value if isinstance(value, list | tuple) else [value]

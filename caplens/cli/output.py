"""Showing results on the terminal, or writing them where and how the user wants them."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Any

import rich.box
import rich.console
import rich.table
import rich.text

from caplens.data.files import ensure_apart, ensure_writable, replacing
from caplens.errors import CaplensError, InputError
from caplens.report import Table, delimited, latex, markdown


class Format(StrEnum):
    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    markdown = "markdown"
    latex = "latex"


_SUFFIXES = {
    ".json": Format.json,
    ".jsonl": Format.jsonl,
    ".csv": Format.csv,
    ".tsv": Format.tsv,
    ".md": Format.markdown,
    ".tex": Format.latex,
    ".txt": Format.table,
}


_hidden = ContextVar("hidden", default=False)
_IF_ANY = ("error", "doubt")
_SHORT = 24
"""Cells up to this long are never broken into lines."""


def choose_format(output: Path | None, asked: Format | None, *inputs: Path | None) -> Format:
    """The format asked for, or told by the output's name; complains before any work if the place cannot be written."""
    if output is not None:
        ensure_apart(output, *inputs)
        ensure_writable(output)
    if asked is not None:
        return asked
    if output is None:
        return Format.table
    try:
        return _SUFFIXES[output.suffix.lower()]
    except KeyError:
        raise InputError(f"{output}: the name does not tell the format. Choose one with --format: {', '.join(Format)}.") from None


def deliver(
    output: Path | None,
    form: Format,
    document: Callable[[], dict[str, Any]],
    summary: Sequence[Table],
    rows: Callable[[], Table] | None = None,
    inputs: Mapping[str, Path | Mapping[str, Path] | str | None] | None = None,
) -> None:
    """Write a result in one form.

    JSON holds everything, also which files it was made from; the table forms hold `summary`; the row forms (JSONL, CSV, TSV) hold
    `rows`, or the first table of the summary.
    """
    if inputs is not None:
        document = _with_inputs(document, inputs, Path() if output is None else output.parent)
    if output is None:
        with _failures_of_stdout_told():
            if form is Format.table:
                _print(rich.console.Console(), summary)
            else:
                sys.stdout.write(_text(form, document, summary, rows))
            sys.stdout.flush()
        return
    with replacing(output) as target:
        target.write_text(_text(form, document, summary, rows), encoding="utf-8", newline="\n")
    say(f"written to {output}")


def _with_inputs(
    document: Callable[[], dict[str, Any]], inputs: Mapping[str, Path | Mapping[str, Path] | str | None], folder: Path
) -> Callable[[], dict[str, Any]]:
    """Files are named relative to the result's folder, so that `caplens report` finds them when both are moved together."""

    def named(value: Path | Mapping[str, Path] | str) -> Any:
        if isinstance(value, Mapping):
            return {name: named(path) for name, path in value.items()}
        return os.path.relpath(value, folder) if isinstance(value, Path) else value

    known = {name: named(value) for name, value in inputs.items() if value is not None and str(value) != "-"}
    return lambda: {**document(), "inputs": known}


def _text(
    form: Format, document: Callable[[], dict[str, Any]], summary: Sequence[Table], rows: Callable[[], Table] | None
) -> str:
    match form:
        case Format.table:
            out = io.StringIO()
            _print(rich.console.Console(file=out, width=160), summary)
            return out.getvalue()
        case Format.json:
            return _json(document())
        case Format.markdown:
            return "\n".join(markdown(table) for table in summary)
        case Format.latex:
            return "\n".join(latex(table) for table in summary)
    table = rows() if rows else summary[0]
    if form is not Format.jsonl:
        return delimited(table, "\t" if form is Format.tsv else ",")
    objects = (_without_gaps(dict(zip(table.columns, row, strict=True))) for row in table.rows)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)


def _print(console: rich.console.Console, tables: Sequence[Table]) -> None:
    for table in tables:
        made = rich_table(table)
        if made.title:
            console.print(rich.text.Text(str(made.title), style="italic"), soft_wrap=True)
            made.title = None
        # A line that the terminal breaks is read more easily than a number that was cut.
        needed = sum((column.min_width or _SHORT) + 2 for column in made.columns) + 2
        console.print(made, width=max(console.width, needed), crop=False, soft_wrap=needed > console.width)
        for note in table.notes:
            console.print(rich.text.Text(note, style="dim"), soft_wrap=True)


@contextmanager
def _failures_of_stdout_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # Someone like `head` has seen enough; the command line library ends the program quietly.
        raise
    except OSError as error:
        raise CaplensError(f"standard output cannot be written ({error.strerror}).") from None


def print_json(document: Mapping[str, Any]) -> None:
    """What a command found or did, for programs."""
    with _failures_of_stdout_told():
        sys.stdout.write(_json(document))
        sys.stdout.flush()


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def remarks_hidden(hidden: bool) -> Iterator[None]:
    """For those who want results, warnings and errors only."""
    token = _hidden.set(hidden)
    try:
        yield
    finally:
        _hidden.reset(token)


def say(message: str) -> None:
    """A remark to the user; results alone go to standard output."""
    if not _hidden.get():
        _tell(message)


def warn(messages: Sequence[str]) -> None:
    for message in messages:
        _tell(f"caplens: warning: {message}")


def complain(error: CaplensError) -> None:
    _tell(f"caplens: {error}")


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


def _without_gaps(row: dict[str, Any]) -> dict[str, Any]:
    """NaN is not JSON, and a row without an error or doubt needs no word of it."""
    return {key: None if value != value else value for key, value in row.items() if value is not None or key not in _IF_ANY}


def rich_table(table: Table) -> rich.table.Table:
    made = rich.table.Table(title=table.title or None, box=rich.box.SIMPLE_HEAD, title_justify="left")
    for index, column in enumerate(table.columns):
        short = all(len(table.shown(row[index])) <= _SHORT for row in table.rows)
        widest = max([len(column), *(len(table.shown(row[index])) for row in table.rows)])
        made.add_column(
            column,
            justify="right" if table.is_number(index) else "left",
            no_wrap=short,
            overflow="fold",
            min_width=widest if short else None,
        )
    for row in table.rows:
        made.add_row(*(rich.text.Text(table.shown(cell)) for cell in row))
    return made

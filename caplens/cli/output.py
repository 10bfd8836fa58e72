"""Showing results on the terminal, or writing them where and how the user wants them."""

import io
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console

from caplens.data.replacing import ensure_apart, ensure_writable, replacing
from caplens.errors import CaplensError, InputError
from caplens.partitions.folders import JOB, as_url
from caplens.progress import logger
from caplens.report import latex_document, markdown
from caplens.results.base import ROW_WRITERS, TEXT_WRITERS, Result, ResultRow, json_text
from caplens.results.table import Table, print_tables, render_text
from caplens.terminal import say, visible


class Format(StrEnum):
    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    xlsx = "xlsx"
    markdown = "markdown"
    latex = "latex"


_SUFFIXES = {
    ".json": Format.json,
    ".jsonl": Format.jsonl,
    ".csv": Format.csv,
    ".tsv": Format.tsv,
    ".parquet": Format.parquet,
    ".xlsx": Format.xlsx,
    ".md": Format.markdown,
    ".tex": Format.latex,
    ".txt": Format.table,
}
Inputs = Mapping[str, Path | Mapping[str, Path] | str | None]
"""The files that a result was made from, by what they are."""


def choose_format(output: Path | None, asked: Format | None, *inputs: Path | None) -> Format:
    """The format asked for, or that of the output's suffix. Fails before any work if the output cannot be written."""
    if output is not None:
        ensure_apart(output, *inputs)
        ensure_writable(output)
    if asked in (Format.parquet, Format.xlsx) and output is None:
        raise InputError(f"{asked} is not text; name a file with --output.")
    if asked is not None:
        return asked
    if output is None:
        return Format.table
    try:
        return _SUFFIXES[output.suffix.lower()]
    except KeyError:
        raise InputError(f"{output}: the suffix names no format. Choose one with --format: {', '.join(Format)}.") from None


def names_folder(output: Path | None, asked: Format | None) -> bool:
    """Whether an output is a URL or a folder of partitions, rather than a file.

    A folder is empty, holds a job, or is yet to be made; a name without a suffix is that of a folder.
    """
    if output is None or asked is not None:
        return False
    if as_url(output) is not None or not output.exists():
        return as_url(output) is not None or not output.suffix
    return output.is_dir() and ((output / JOB).is_file() or not any(output.iterdir()))


def check_unused(options: Mapping[str, object]) -> None:
    """An error for options that jobs of partitions do not have."""
    unused = next((name for name, value in options.items() if value), None)
    if unused is not None:
        raise InputError(f"{unused} cannot be used where the output is a folder: captions are scored partition by partition.")


def write_result(result: Result, output: Path | None, form: Format, inputs: Inputs | None = None, *, show: bool = False) -> None:
    """Write a result in one format, then its warnings to standard error.

    JSON holds everything, also which files it was made from. With `show`, the tables are printed where they are not written.
    """
    document: Callable[[], dict[str, Any]] = result.to_dict
    if inputs is not None:
        document = _with_inputs(document, inputs, Path() if output is None else output.parent)
    tables = result.paper_tables() if form in (Format.markdown, Format.latex) else result.tables()
    if show and output is not None and logger.isEnabledFor(logging.INFO):
        write_tables(result.tables(), None, Format.table, document)
    write_tables(tables, output, form, document, result.to_rows)
    warn(result.warnings)


def write_tables(
    tables: Sequence[Table],
    output: Path | None,
    form: Format,
    document: Callable[[], dict[str, Any]],
    rows: Callable[[], Iterable[ResultRow]] | None = None,
) -> None:
    """Write tables in one format; JSON is `document`, and rows are those of the first table unless there are others."""
    label = "caplens" if output is None else output.stem
    content = _Content(tables, document, rows or (lambda: _rows_of(tables[0])), label)
    if output is None:
        with _stdout_errors():
            if form is Format.table:
                print_tables(Console(), tables)
            else:
                print_text(content.text(form))
            sys.stdout.flush()
        return
    with replacing(output) as target:
        if form in (Format.parquet, Format.xlsx):
            ROW_WRITERS[f".{form}"](content.rows(), target)
        else:
            target.write_text(content.text(form), encoding="utf-8", errors="backslashreplace", newline="\n")
    info(f"written to {output}")


class _Content:
    """The same content in any text format."""

    def __init__(
        self,
        tables: Sequence[Table],
        document: Callable[[], dict[str, Any]],
        rows: Callable[[], Iterable[ResultRow]],
        label: str,
    ) -> None:
        self.tables, self.document, self.rows, self.label = tables, document, rows, label

    def text(self, form: Format) -> str:
        match form:
            case Format.table:
                return render_text(self.tables)
            case Format.json:
                return json_text(self.document())
            case Format.markdown:
                return "\n".join(markdown(table) for table in self.tables)
            case Format.latex:
                return latex_document(self.tables, self.label)
        out = io.StringIO()
        TEXT_WRITERS[f".{form}"](self.rows(), out)
        return out.getvalue()


def _rows_of(table: Table) -> Iterator[ResultRow]:
    return (dict(zip(table.columns, row, strict=True)) for row in table.rows)


def _with_inputs(document: Callable[[], dict[str, Any]], inputs: Inputs, folder: Path) -> Callable[[], dict[str, Any]]:
    """Files are named relative to the result's folder, so that `caplens report` finds them when both are moved together."""

    def relative(value: Path | Mapping[str, Path] | str) -> Any:
        if isinstance(value, Mapping):
            return {name: relative(path) for name, path in value.items()}
        # Through a link, the folder above is another than it seems.
        return visible(os.path.relpath(os.path.realpath(value), os.path.realpath(folder))) if isinstance(value, Path) else value

    named = {name: relative(value) for name, value in inputs.items() if value is not None and str(value) != "-"}
    return lambda: {**document(), "inputs": named}


@contextmanager
def _stdout_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # A reader like `head` has enough; the command line library ends the program quietly.
        raise
    except OSError as error:
        # What is left in the buffer cannot be written either; without this, Python tries again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CaplensError(f"standard output cannot be written ({error.strerror}).") from None


def print_text(text: str) -> None:
    """Write text for programs to standard output: in UTF-8, whatever the stream's encoding, and harmless on a terminal."""
    if sys.stdout.isatty():
        text = visible(text)
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    binary.write(text.encode("utf-8", "backslashreplace"))
    binary.flush()


def print_json(document: Mapping[str, Any]) -> None:
    """What a command did, for programs."""
    with _stdout_errors():
        print_text(json_text(document))


class _StderrHandler(logging.Handler):
    """Messages of the library on standard error, as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "caplens: warning: " if record.levelno >= logging.WARNING else ""
        say(prefix + record.getMessage())


@contextmanager
def messages_shown(quiet: bool) -> Iterator[None]:
    """Show messages on standard error while the block runs; with `quiet` only warnings."""
    handler, level = _StderrHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def info(message: str) -> None:
    """A message to the user; results alone go to standard output."""
    logger.info(message)


def warn(messages: Iterable[str]) -> None:
    for message in messages:
        logger.warning(message)


def error(message: object) -> None:
    say(f"caplens: {message}")

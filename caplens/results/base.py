"""What every result can do: print itself, become rows or a data frame, be written and be read again.

A result is data first. Its JSON names its `kind` and the `schema` of its keys, by which it is loaded; tables, CSV, Parquet, LaTeX
and the HTML page are views of the same object.
"""

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TextIO, TypeVar

import numpy as np

from caplens.arrays import Floats
from caplens.data.formats import spreadsheet
from caplens.data.formats.formulas import formulas_allowed, guarded
from caplens.data.formats.json_document import to_json
from caplens.data.replacing import replacing
from caplens.data.rows import of_one_table
from caplens.errors import InputError
from caplens.libraries import require
from caplens.results.table import Table, render_text
from caplens.version import __version__

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
SCHEMA = 2
"""Of the JSON written now. Results of caplens 0.1 have no `schema`, and are read too."""
Content = Mapping[str, Any]
"""A result as JSON has it."""
ResultRow = dict[str, Any]


class Result(ABC):
    """What a run of caplens found."""

    kind: ClassVar[str]
    warnings: list[str]

    @abstractmethod
    def tables(self) -> list[Table]:
        """The tables that people want to see first."""

    def paper_tables(self) -> list[Table]:
        """The tables in the form that papers print them, for Markdown and LaTeX."""
        return self.tables()

    @abstractmethod
    def to_rows(self) -> Iterator[ResultRow]:
        """The result as rows, for CSV, Parquet and data frames."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What the JSON holds beside the version, kind and schema."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Content) -> Self:
        """The result that `to_dict` turned into JSON."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {"caplens": __version__, "kind": self.kind, "schema": SCHEMA, **self.content()}

    def __str__(self) -> str:
        return render_text(self.tables()).rstrip() + "".join(f"\nwarning: {warning}" for warning in self.warnings)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas data frame of `to_rows`."""
        frame: pandas.DataFrame = require("pandas", "A pandas data frame", "frames").DataFrame(list(self.to_rows()))
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """A polars data frame of `to_rows`."""
        library = require("polars", "A polars data frame", "frames")
        frame: polars.DataFrame = library.DataFrame(list(self.to_rows()), infer_schema_length=None)
        return frame

    def save(self, path: str | PathLike[str], *, allow_formulas: bool = False) -> None:
        """Write the result: all of it to `.json`, its rows to `.jsonl`, `.csv`, `.tsv`, `.xlsx` or `.parquet`.

        Parameters
        ----------
        path
            The file; its suffix names the format.
        allow_formulas
            Whether text that a spreadsheet would run as a formula is written to `.csv`, `.tsv` and `.xlsx` as it is, without an
            apostrophe before it.

        Raises
        ------
        InputError
            If the suffix is another one, or the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            with replacing(path) as target:
                target.write_text(json_text(self.to_dict()), encoding="utf-8", errors="backslashreplace", newline="\n")
        elif suffix in ROW_WRITERS:
            with replacing(path) as target, formulas_allowed(allow_formulas):
                ROW_WRITERS[suffix](self.to_rows(), target)
        else:
            choice = ", ".join([".json", *ROW_WRITERS])
            raise InputError(f"{path}: the suffix names no format of results; choose from: {choice}.")


def json_text(document: Mapping[str, Any]) -> str:
    return to_json(document) + "\n"


_IF_ANY = ("error", "doubt")
"""Keys that a row has only if there is something to say."""


def without_gaps(row: ResultRow) -> ResultRow:
    """NaN is not JSON, and a row without an error or warning needs no key for it."""
    return {key: null_if_nan(value) for key, value in row.items() if value is not None or key not in _IF_ANY}


def write_jsonl(rows: Iterable[ResultRow], out: TextIO) -> None:
    out.writelines(to_json(without_gaps(row)) + "\n" for row in rows)


def write_delimited(rows: Iterable[ResultRow], out: TextIO, delimiter: str = ",") -> None:
    """CSV or TSV with full precision; lists and objects are JSON inside their cell."""
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for number, row in enumerate(of_one_table(rows)):
        if not number:
            writer.writerow([guarded(name) for name in row])
        writer.writerow([guarded(_csv_cell(value)) for value in row.values()])


def _csv_cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    return to_json(value) if isinstance(value, list | dict) else value


def write_parquet(rows: Iterable[ResultRow], path: Path) -> None:
    arrow = require("pyarrow", "Writing Parquet", "parquet")
    parquet = require("pyarrow.parquet", "Writing Parquet", "parquet")
    listed = list(of_one_table(rows))
    # A column has one type: where one cell is an object, all are JSON.
    nested = {key for row in listed for key, value in row.items() if _is_nested(value)}
    plain = [
        {key: to_json(value) if key in nested and value is not None else null_if_nan(value) for key, value in row.items()}
        for row in listed
    ]
    try:
        parquet.write_table(arrow.Table.from_pylist(plain), path)
    except (arrow.ArrowException, OverflowError) as error:
        raise InputError(f"the rows cannot be written as Parquet ({' '.join(str(error).split())}). Write JSONL.") from None


def _is_nested(value: Any) -> bool:
    """Objects of any shape are JSON; lists of texts and numbers stay lists."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value))


def _to_file(write: Callable[[Iterable[ResultRow], TextIO], None]) -> Callable[[Iterable[ResultRow], Path], None]:
    def write_file(rows: Iterable[ResultRow], path: Path) -> None:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            write(rows, out)

    return write_file


TEXT_WRITERS: dict[str, Callable[[Iterable[ResultRow], TextIO], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_delimited,
    ".tsv": lambda rows, out: write_delimited(rows, out, "\t"),
}
ROW_WRITERS: dict[str, Callable[[Iterable[ResultRow], Path], None]] = {
    **{suffix: _to_file(write) for suffix, write in TEXT_WRITERS.items()},
    ".parquet": write_parquet,
    ".xlsx": spreadsheet.write_rows,
}


def null_if_nan(value: T) -> T | None:
    """JSON has no NaN: a missing number is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def json_object(record: tuple[Any, ...]) -> dict[str, Any]:
    """A named tuple as JSON has it."""
    return {name: null_if_nan(value) for name, value in zip(record._fields, record, strict=True)}  # type: ignore[attr-defined]


def json_values(values: Floats) -> list[float | None]:
    return [null_if_nan(value) for value in values.tolist()]


def number(value: float | None) -> float:
    """A number that JSON had to write as null, if it did."""
    return float("nan") if value is None else float(value)


def floats(values: Sequence[float | None]) -> Floats:
    return np.array([number(value) for value in values], dtype=np.float64)


def numbers_of(record: Mapping[str, Any], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields of a record, with NaN in place of null except for those that may be None."""
    return {key: float("nan") if value is None and key not in optional else value for key, value in record.items()}


def texts_of_rows(content: Content, name: str, size: int) -> list[str | None]:
    """A text or null for each row, as `lang` has; all null where the content has none."""
    texts = list(content.get(name) or [None] * size)
    if len(texts) != size or not all(text is None or isinstance(text, str) for text in texts):
        raise TypeError(f"{name} is a text or null for each caption")
    return texts

"""Data frames of pandas and polars, without importing either."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from caplens.data.files import Place
from caplens.data.rows import canonical_name, sample_from_row
from caplens.data.sample import Sample
from caplens.errors import InputError


@runtime_checkable
class DataFrame(Protocol):
    """A pandas or polars data frame."""

    @property
    def columns(self) -> Iterable[object]: ...


def is_dataframe(value: object) -> bool:
    return hasattr(value, "columns") and (hasattr(value, "itertuples") or hasattr(value, "iter_rows"))


def has_ids(frame: Any) -> bool:
    """Whether its rows have ids of their own."""
    return bool({"id", "image_id"} & {canonical_name(str(column)) for column in frame.columns})


def read_dataframe(frame: Any) -> Iterator[Sample]:
    """A sample per row; columns are named as in a file, and rows without an `id` are numbered."""
    columns = [canonical_name(str(column)) for column in frame.columns]
    if len(set(columns)) < len(columns):
        raise InputError("the data frame has two columns of one name. Rename one of them.")
    numbered = not has_ids(frame)
    rows = frame.iter_rows() if hasattr(frame, "iter_rows") else frame.itertuples(index=False, name=None)
    for number, values in enumerate(rows):
        row = {name: _plain(value) for name, value in zip(columns, values, strict=True)}
        row = {name: "" if name == "caption" and value is None else value for name, value in row.items()}
        row = {name: value for name, value in row.items() if value is not None}
        if numbered:
            row["id"] = number
        yield sample_from_row(row, Place(Path("data frame"), number + 1, "row"))


def _plain(value: Any) -> Any:
    """A plain Python value: pandas has NaN or NA for missing values, and numbers and lists of numpy."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return None if (isinstance(value, float) and value != value) or type(value).__name__ == "NAType" else value

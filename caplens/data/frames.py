"""Tables of pandas and polars, without importing either: rows are taken from whatever has them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caplens.data.files import Place
from caplens.data.rows import sample_from_row
from caplens.data.sample import Sample


def is_frame(thing: object) -> bool:
    return hasattr(thing, "columns") and (hasattr(thing, "itertuples") or hasattr(thing, "iter_rows"))


def samples_of_frame(frame: Any) -> Iterator[Sample]:
    """A sample for each row, whose columns are called as in a file; where there is no `id`, rows are numbered."""
    columns = [str(column) for column in frame.columns]
    numbered = not {"id", "image_id"} & set(columns)
    rows = frame.iter_rows() if hasattr(frame, "iter_rows") else frame.itertuples(index=False, name=None)
    for number, values in enumerate(rows):
        row = {name: _plain(value) for name, value in zip(columns, values, strict=True)}
        row = {name: "" if name == "caption" and value is None else value for name, value in row.items()}
        row = {name: value for name, value in row.items() if value is not None}
        if numbered:
            row["id"] = number
        yield sample_from_row(row, Place(Path("table"), number + 1, "row"))


def _plain(value: Any) -> Any:
    """What Python itself has: pandas writes what is missing as NaN or NA, and numbers and lists as those of numpy."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return None if (isinstance(value, float) and value != value) or type(value).__name__ == "NAType" else value

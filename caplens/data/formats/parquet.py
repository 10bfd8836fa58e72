"""Parquet, through pyarrow (the `parquet` extra)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from caplens.arrays import Flags, Floats
from caplens.data.columns import Columns
from caplens.data.extracted import extracted_image
from caplens.data.files import Place, max_line_bytes, too_long
from caplens.data.formats import arrow_stream
from caplens.data.formats.json_document import to_json
from caplens.data.rows import FIELDS, Row, free_name, from_cell, row_from_sample
from caplens.data.sample import Rating, Sample
from caplens.errors import InputError, MissingExtraError
from caplens.libraries import install_command

_BATCH = 10_000
_GROUP_PER_LINE, _BATCH_PER_LINE = 32, 4
"""How many times larger than a line a row group may be, and the rows that are read at once."""
_LONG, _MOST_SHARED = 1000, 1000
"""Texts longer than this are shared by the rows that have them; of so many texts."""
_GROUP_BYTES = 32 << 20
"""Of rows that are kept before they are written as a group."""
_MOST_VALUES = 5_000_000
"""Values that the rows of a batch may have in one column, in lists."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Reading or writing Parquet", "pyarrow", install_command("parquet")) from None
    return pyarrow


def read_rows(path: Path, columns: Columns | None = None) -> Iterator[tuple[Place, Row]]:
    arrow = _pyarrow()
    try:
        with arrow.parquet.ParquetFile(path) as table:
            names = _checked_names(table.schema_arrow.names, path, columns or Columns())
            yield from _rows_of(arrow, _batches(arrow, table, path), names, path)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not a readable Parquet file ({reason}). Get it again.") from None


def read_arrow_rows(path: Path, columns: Columns | None = None) -> Iterator[tuple[Place, Row]]:
    """The rows of an Arrow stream, as `datasets` of Hugging Face keeps them on disk."""
    arrow = _pyarrow()
    try:
        with arrow.memory_map(str(path)) as file:
            names = _checked_names(arrow_stream.read_schema(arrow, file).names, path, columns or Columns())
            file.seek(0)
            batches = arrow_stream.read_batches(arrow, file, path, _BATCH)
            yield from _rows_of(arrow, (_checked(arrow, batch, path) for batch in batches), names, path)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not a readable Arrow file ({reason}). Get it again.") from None


def _rows_of(arrow: Any, batches: Iterable[Any], names: Sequence[str], path: Path) -> Iterator[tuple[Place, Row]]:
    number = 0
    long: dict[Any, Any] = {}
    for batch in batches:
        by_column = [
            _values(arrow, column, f"{path}: the column {name!r}") for column, name in zip(batch.columns, names, strict=True)
        ]
        for values in zip(*(_shared(column, long) for column in by_column), strict=True):
            number += 1
            place = Place(path, number, "row")
            yield (
                place,
                {
                    name: _value(name, value, place)
                    for name, value in zip(names, values, strict=True)
                    if value is not None or name == "caption"
                },
            )


def _value(name: str, value: Any, place: Place) -> Any:
    """A value as rows have it: an image inside the table becomes a file."""
    if name == "image" and isinstance(value, bytes | dict):
        content, own_name = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
        own_name = own_name if isinstance(own_name, str) else None
        return extracted_image(own_name, content, place) if isinstance(content, bytes) and content else own_name
    return from_cell(name, value, place) if isinstance(value, str) else value


def _checked_names(header: Sequence[str], path: Path, columns: Columns) -> list[str]:
    """The names of the columns, of which none may appear twice."""
    names = columns.renamed(header, Place(path))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{path}: the column {repeated[0]!r} appears twice. Rename one of them.")
    return names


def _batches(arrow: Any, table: Any, path: Path) -> Iterator[Any]:
    """The rows of a table, as many at a time as memory allows.

    A small file can hold much: a long text that rows share is stored once, and read once for each of them. No text is larger than
    its row group. The sizes of single columns are not asked for: pyarrow ends the process where those of a damaged file make no
    sense.
    """
    line = max_line_bytes()
    for group in range(table.metadata.num_row_groups):
        size = table.metadata.row_group(group).total_byte_size
        if size > _GROUP_PER_LINE * line:
            raise too_long(Place(path, group + 1, "row group"), "this group of rows", _GROUP_PER_LINE * line)
        rows = max(1, min(_BATCH, _BATCH_PER_LINE * line // max(1, size)))
        for batch in table.iter_batches(rows, row_groups=[group]):
            yield _checked(arrow, batch, path)


def _checked(arrow: Any, batch: Any, path: Path) -> Any:
    """The batch; an error if its lists hold more than fits into memory as Python has it."""
    most = max((_value_count(arrow, column) for column in batch.columns), default=0)
    if most > _MOST_VALUES:
        raise InputError(f"{path}: a few rows hold lists of {most:,} values, which is more than is read at once.")
    return batch


def _values(arrow: Any, column: Any, what: str) -> list[Any]:
    """The values of a column; as text, if they are times that Python has no value for, such as nanoseconds."""
    unusable = (arrow.ArrowException, ValueError, ArithmeticError, LookupError)
    try:
        if arrow.types.is_dictionary(column.type):
            # A value that many rows share is one in memory.
            numbers = column.indices.to_pylist()
            shared = {number: column.dictionary[number].as_py() for number in set(numbers) if number is not None}
            return [None if number is None else shared[number] for number in numbers]
        return list(column.to_pylist())
    except unusable:
        try:
            return list(column.cast(arrow.string()).to_pylist())
        except unusable as error:
            raise InputError(
                f"{what} cannot be read ({' '.join(str(error).split())}). Leave it out, or write it as text."
            ) from None


def _shared(values: list[Any], long: dict[Any, Any]) -> list[Any]:
    """The values, of which long ones that are equal are one in memory."""
    if len(long) > _MOST_SHARED:
        long.clear()
    return [long.setdefault(value, value) if isinstance(value, str | bytes) and len(value) > _LONG else value for value in values]


def _value_count(arrow: Any, column: Any) -> int:
    """How many values a column has, those in lists counted one by one."""
    count = len(column)
    kind = column.type
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind):
        count = max(count, _value_count(arrow, column.flatten()))
    elif arrow.types.is_map(kind):
        count = max(count, _value_count(arrow, column.keys), _value_count(arrow, column.items))
    elif arrow.types.is_struct(kind):
        count = max([count, *(_value_count(arrow, part) for part in column.flatten())])
    return count


def row_count(path: Path) -> int:
    """How many rows a file says it has."""
    arrow = _pyarrow()
    with arrow.parquet.ParquetFile(path) as table:
        return int(table.metadata.num_rows)


def copy_rows(path: Path, target: Path, kept: Flags, scores: Floats, column: str) -> None:
    """Copy the rows that are kept with all their columns, and their scores in a column of their own.

    A column that has the name of the scores already is called `NAME (input)`, as in results.
    """
    arrow = _pyarrow()
    try:
        with arrow.parquet.ParquetFile(path) as table:
            taken = set(table.schema_arrow.names)
            names = [free_name(name, taken) if name == column else name for name in table.schema_arrow.names]
            schema = arrow.schema(
                [
                    *(field.with_name(name) for field, name in zip(table.schema_arrow, names, strict=True)),
                    (column, arrow.float64()),
                ]
            )
            start, metadata = 0, table.metadata
            with arrow.parquet.ParquetWriter(target, schema, compression=_compression(metadata)) as writer:
                groups = _RowGroups(arrow, writer, -(-metadata.num_rows // max(1, metadata.num_row_groups)))
                for batch in _batches(arrow, table, path):
                    rows = slice(start, start + batch.num_rows)
                    start += batch.num_rows
                    if kept[rows].any():
                        columns = [*batch.columns, arrow.array(scores[rows])]
                        groups.add(arrow.RecordBatch.from_arrays(columns, schema=schema).filter(arrow.array(kept[rows])))
                groups.flush()
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({' '.join(str(error).split())}). Get it again.") from None


class _RowGroups:
    """Batches written in groups as large as those of the input, unless these take too much memory."""

    def __init__(self, arrow: Any, writer: Any, rows: int) -> None:
        self._arrow, self._writer, self._most_rows = arrow, writer, rows
        self._batches: list[Any] = []
        self._rows = self._bytes = 0

    def add(self, batch: Any) -> None:
        self._batches.append(batch)
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
        if self._rows >= self._most_rows or self._bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._batches:
            self._writer.write_table(self._arrow.Table.from_batches(self._batches))
        self._batches, self._rows, self._bytes = [], 0, 0


def _compression(metadata: Any) -> str:
    """That of the input."""
    name = metadata.row_group(0).column(0).compression if metadata.num_row_groups and metadata.num_columns else "SNAPPY"
    return "none" if name == "UNCOMPRESSED" else str(name).lower()


def write(samples: Iterable[Sample], path: Path) -> None:
    arrow = _pyarrow()
    remaining = iter(samples)
    batch = list(islice(remaining, _BATCH))
    detailed = any(_has_detailed_ratings(sample) for sample in batch)
    schema = _schema(arrow, detailed=detailed)
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        while batch:
            try:
                writer.write_table(arrow.Table.from_pylist([_row(sample, detailed) for sample in batch], schema=schema))
            except arrow.ArrowInvalid as error:
                raise InputError(
                    f"the samples cannot be written as Parquet ({error}). Ratings with a rater, criterion or time must occur in"
                    f" the first {_BATCH:,} rows; write JSONL otherwise."
                ) from None
            batch = list(islice(remaining, _BATCH))


def _schema(arrow: Any, *, detailed: bool) -> Any:
    """Ratings are floats, or structs where a rating of the first batch has a rater, criterion or time."""
    text, texts, number = arrow.string(), arrow.list_(arrow.string()), arrow.float64()
    record = arrow.struct([("value", number), *((name, text) for name in Rating._fields[1:])])
    kinds = {"references": texts, "ratings": arrow.list_(record if detailed else number)}
    return arrow.schema([*((name, kinds.get(name, text)) for name in FIELDS), ("meta", text)])


def _has_detailed_ratings(sample: Sample) -> bool:
    return any(rating[1:] != (None, None, None) for rating in sample.ratings)


def _row(sample: Sample, detailed: bool) -> Row:
    row = row_from_sample(replace(sample, meta={}))
    if detailed:
        row["ratings"] = [rating._asdict() for rating in sample.ratings]
    meta = to_json(dict(sample.meta)) if sample.meta else None
    return {**{name: row.get(name) for name in FIELDS}, "meta": meta}

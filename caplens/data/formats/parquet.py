"""Parquet, through pyarrow (the `parquet` extra)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from caplens.data.files import Place, max_line_bytes, too_long
from caplens.data.formats.json_document import to_json
from caplens.data.rows import FIELDS, Row, from_cell, row_from_sample
from caplens.data.sample import Rating, Sample
from caplens.errors import InputError, MissingExtraError

_BATCH = 10_000
_GROUP_PER_LINE, _BATCH_PER_LINE = 32, 4
"""How many times larger than a line a row group may be, and the rows that are read at once."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Reading or writing Parquet", "pyarrow", "pip install 'caplens[parquet]'") from None
    return pyarrow


def read_rows(path: Path) -> Iterator[tuple[Place, Row]]:
    arrow = _pyarrow()
    try:
        number = 0
        with arrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(_rows_at_once(table, path)):
                for values in batch.to_pylist():
                    number += 1
                    place = Place(path, number, "row")
                    yield (
                        place,
                        {
                            name: from_cell(name, value, place) if isinstance(value, str) else value
                            for name, value in values.items()
                            if value is not None or name == "caption"
                        },
                    )
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not a readable Parquet file ({reason}). Get it again.") from None


def _rows_at_once(table: Any, path: Path) -> int:
    """How many rows to read at once; raises an error if a name appears twice, or if a row group would fill the memory.

    A small file can hold much: a long text that many rows share is stored once, and read once for each of them. Sizes of single
    columns are not looked at: pyarrow ends the process where those of a damaged file make no sense.
    """
    repeated = [name for name, count in Counter(table.schema_arrow.names).items() if count > 1]
    if repeated:
        raise InputError(f"{path}: the column {repeated[0]!r} appears twice. Rename one of them.")
    line = max_line_bytes()
    limit = _GROUP_PER_LINE * line
    sizes: list[int] = [table.metadata.row_group(group).total_byte_size for group in range(table.metadata.num_row_groups)]
    for group, size in enumerate(sizes):
        if size > limit:
            raise too_long(Place(path, group + 1, "row group"), "this group of rows", limit)
    return max(1, min(_BATCH, _BATCH_PER_LINE * line // max([1, *sizes])))


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
    row = row_from_sample(sample)
    if detailed:
        row["ratings"] = [rating._asdict() for rating in sample.ratings]
    meta = to_json(dict(sample.meta)) if sample.meta else None
    return {**{name: row.get(name) for name in FIELDS}, "meta": meta}

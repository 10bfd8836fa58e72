"""Parquet, through pyarrow (the `parquet` extra)."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from caplens.data.files import Place
from caplens.data.rows import FIELDS, Row, from_cell, row_from_sample
from caplens.data.sample import Sample
from caplens.errors import InputError, MissingExtraError

_BATCH = 10_000


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
            for batch in table.iter_batches(_BATCH):
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


def write(samples: Iterable[Sample], path: Path) -> None:
    arrow = _pyarrow()
    text, texts, numbers = arrow.string(), arrow.list_(arrow.string()), arrow.list_(arrow.float64())
    types = {name: {"references": texts, "ratings": numbers}.get(name, text) for name in FIELDS}
    schema = arrow.schema([*types.items(), ("meta", text)])
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        rows = iter(samples)
        while batch := list(islice(rows, _BATCH)):
            columns = [_columns(sample) for sample in batch]
            writer.write_table(arrow.Table.from_pylist(columns, schema=schema))


def _columns(sample: Sample) -> Row:
    row = row_from_sample(sample)
    meta = json.dumps(dict(sample.meta), ensure_ascii=False) if sample.meta else None
    return {**{name: row.get(name) for name in FIELDS}, "meta": meta}

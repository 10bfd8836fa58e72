"""Vectors as Parquet: a folder for each model with sixteen files by the first digit of the key, to carry them between machines.

SQLite, in which the store is kept, does not work on network file systems; these files can lie there, or in an object store.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.data.files import open_regular
from caplens.data.replacing import replacing_folder
from caplens.embed.store import ModelVectorsInfo, Store
from caplens.embed.vector_file import COLUMNS, Entry, ModelVectors
from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.progress import logger, track

_DIGITS = "0123456789abcdef"
_MODEL, _FINGERPRINT = b"caplens_model", b"caplens_fingerprint"
"""Keys of the metadata of each file."""
_TOGETHER = 4096
"""Entries that are read and written together."""
_READ_TOGETHER, _MOST_NUMBERS = 256, 1 << 24
"""Entries that are read together, and the numbers that they may hold."""
_MOST_BYTES = 1 << 28
"""Of a group of rows: files of others may lie about what they hold."""
_WRITTEN = {"compression": "zstd", "write_page_checksum": True}
_FEATURE, _EXTRA = "Vectors in Parquet", "parquet"


class Imported(NamedTuple):
    """How many entries of a model were taken, and how many were damaged."""

    model: str
    taken: int
    damaged: int


def export_vectors(store: Store, about: ModelVectorsInfo, folder: Path) -> int:
    """Write all entries of a model into a folder below `folder`, whole or not at all; returns how many there are."""
    arrow, parquet = _libraries()
    if not _is_fingerprint(about.fingerprint):
        raise InputError(f"{about.path}: its fingerprint is none, so it cannot be exported. caplens did not write this file.")
    vectors = ModelVectors(about.path, about.model or "", about.fingerprint, about.used)
    names = {_MODEL: (about.model or "").encode(), _FINGERPRINT: about.fingerprint.encode()}
    numbers = arrow.list_(arrow.float32())
    schema = arrow.schema(
        [("key", arrow.binary()), ("table", arrow.string()), ("numbers", numbers), ("number", arrow.int64())], metadata=names
    )
    written = 0
    previous = folder / about.fingerprint[:32]
    with replacing_folder(folder / about.fingerprint[:32]) as target, ExitStack() as open_files:
        files = {
            digit: open_files.enter_context(parquet.ParquetWriter(target / f"{digit}.parquet", schema, **_WRITTEN))
            for digit in _DIGITS
        }
        for table in COLUMNS:
            for batch in track(vectors.entries(table, _TOGETHER), f"writing {table}"):
                for digit, entries in _by_digit(batch).items():
                    files[digit].write_table(_as_table(arrow, schema, table, entries))
                written += len(batch)
        # What another machine exported into the folder, or this one before its store was damaged, stays.
        for table, entries in _earlier(previous):
            present = vectors.present([key for key, *_ in entries], table)
            others = [entry for entry in entries if entry[0] not in present and _is_valid(table, entry)]
            for digit, of_digit in _by_digit(others).items():
                files[digit].write_table(_as_table(arrow, schema, table, of_digit))
    vectors.close()
    return written


def _earlier(folder: Path) -> Iterator[tuple[str, list[Entry]]]:
    """The entries of an earlier export, by table; a file that cannot be read is left out."""
    for path in sorted(folder.glob("*.parquet")):
        try:
            yield from _opened(path)[1]
        except InputError as error:
            logger.warning(f"{error} What it held is left out.")


def _by_digit(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The first byte of a key says whether it is of a text or an image; the second is the first of its hash."""
    by_digit: dict[str, list[Entry]] = {}
    for entry in entries:
        by_digit.setdefault(entry[0][1:2].hex()[:1] or "0", []).append(entry)
    return by_digit


def _as_table(arrow: Any, schema: Any, table: str, entries: Sequence[Entry]) -> Any:
    keys, data, numbers = zip(*entries, strict=True)
    lengths = np.array([len(content) // 4 for content in data])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.frombuffer(b"".join(data), dtype="<f4")
    columns = [
        arrow.array(keys, arrow.binary()),
        arrow.array([table] * len(keys)),
        arrow.ListArray.from_arrays(arrow.array(offsets), arrow.array(values)),
        arrow.array(numbers, arrow.int64()),
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def import_vectors(folder: Path, store: Store) -> list[Imported]:
    """Take the entries of every model in a folder that `export_vectors` wrote into; what the store has already stays as it is."""
    _libraries()
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Name one that 'caplens store export' wrote into.")
    # Hidden folders are what an export left that was killed.
    files = sorted(folder.glob("[!.]*/*.parquet")) or sorted(folder.glob("*.parquet"))
    if not files:
        raise InputError(f"{folder}: there are no vectors. Name a folder that 'caplens store export' wrote into.")
    counts: dict[tuple[str, str], list[int]] = {}
    lengths: dict[tuple[str, str], int] = {}
    for path in track(files, "reading vectors", len(files)):
        (model, fingerprint), batches = _opened(path)
        vectors = store.model_vectors(model, fingerprint)
        count = counts.setdefault((model, fingerprint), [0, 0])
        for table, entries in batches:
            valid = [entry for entry in entries if _is_valid(table, entry)]
            if table == "vectors" and valid:
                # Vectors of one model have one length.
                length = lengths.setdefault((model, fingerprint), len(valid[0][1]))
                valid = [entry for entry in valid if len(entry[1]) == length]
            count[0] += vectors.add(table, valid)
            count[1] += len(entries) - len(valid)
        vectors.close()
    return [Imported(model, *count) for (model, _), count in counts.items()]


def _opened(path: Path) -> tuple[tuple[str, str], Iterator[tuple[str, list[Entry]]]]:
    """The model and the fingerprint of a file, and its entries by table."""
    arrow, parquet = _libraries()
    try:
        open_regular(path).close()
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        metadata = file.schema_arrow.metadata or {}
        names = metadata[_MODEL].decode(), metadata[_FINGERPRINT].decode()
        if not _is_fingerprint(names[1]):
            raise ValueError("its fingerprint is none")
    except (OSError, KeyError, ValueError, arrow.ArrowException) as error:
        raise InputError(f"{path}: these are no vectors of caplens ({reason(error)}).") from None
    return names, _batches(arrow, file, path)


def _by_table(batch: Any, path: Path) -> Iterator[tuple[str, list[Entry]]]:
    lists = batch.column("numbers")
    if len(lists.values) > _MOST_NUMBERS:
        raise InputError(f"{path}: a few entries hold {len(lists.values):,} numbers, which are no vectors of caplens.")
    values, offsets = np.asarray(lists.values, dtype="<f4"), lists.offsets.to_numpy()
    keys, kinds, numbers = (batch.column(name).to_pylist() for name in ("key", "table", "number"))
    for table in COLUMNS:
        yield (
            table,
            [
                (key, values[offsets[row] : offsets[row + 1]].tobytes(), number)
                for row, (key, kind, number) in enumerate(zip(keys, kinds, numbers, strict=True))
                if kind == table
            ],
        )


def _is_fingerprint(text: str) -> bool:
    return len(text) >= 32 and set(text) <= set(_DIGITS)


def _batches(arrow: Any, file: Any, path: Path) -> Iterator[tuple[str, list[Entry]]]:
    try:
        for group in range(file.metadata.num_row_groups):
            if file.metadata.row_group(group).total_byte_size > _MOST_BYTES:
                raise InputError(f"{path}: a group of rows is larger than caplens writes them. Export the vectors again.")
            for batch in file.iter_batches(_READ_TOGETHER, row_groups=[group]):
                yield from _by_table(batch, path)
    except (OSError, KeyError, ValueError, TypeError, OverflowError, arrow.ArrowException) as error:
        raise InputError(f"{path}: the file is damaged ({reason(error)}). Export the vectors again.") from None


def _is_valid(table: str, entry: Entry) -> bool:
    """Whether an entry can be what a model returned: numbers that are finite, and as many rows as it says."""
    key, data, number = entry
    numbers = np.frombuffer(data, dtype="<f4")
    if not key or not len(numbers) or not np.isfinite(numbers).all():
        return False
    return number in (0, 1) if table == "vectors" else number is not None and number > 0 and len(numbers) % number == 0


def _libraries() -> tuple[Any, Any]:
    return require("pyarrow", _FEATURE, _EXTRA), require("pyarrow.parquet", _FEATURE, _EXTRA)

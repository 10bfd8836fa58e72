"""Arrow streams, as `datasets` of Hugging Face keeps tables on disk, read batch by batch with a limit on each.

What a compressed batch takes is known only once it is unpacked, and a file of kilobytes can hold gigabytes: such streams are
not read.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caplens.data.files import Place, max_line_bytes, too_long
from caplens.errors import InputError

_RECORD_BATCH, _DICTIONARY_BATCH = "record batch", "dictionary"
_MOST_ROWS = 50_000_000
_BATCH_PER_LINE = 32
"""How many times larger than a line a batch may be."""
_HEADER, _DATA, _COMPRESSION = 2, 1, 3
"""Numbers of fields in the tables of Arrow's messages: the header of a message, the batch of a dictionary, its compression."""


def read_batches(arrow: Any, file: Any, path: Path, rows: int) -> Iterator[Any]:
    """The batches of a stream, `rows` at a time."""
    _check_messages(arrow, file, path)
    file.seek(0)
    with arrow.ipc.open_stream(file) as stream:
        odd = next((field for field in stream.schema if not _is_plain(arrow, field.type)), None)
        if odd is not None:
            raise InputError(f"{path}: the column {odd.name!r} has the type {odd.type}, which is not read. Save it as Parquet.")
        for batch in stream:
            batch.validate(full=True)
            if batch.num_rows > _MOST_ROWS:
                raise InputError(f"{path}: a batch says that it has {batch.num_rows:,} rows. Save the table as Parquet.")
            yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _is_plain(arrow: Any, kind: Any, *, inside: bool = False) -> bool:
    """Whether values take about as much memory as in the file: not those that rows, lists or structs share with others."""
    types = arrow.types
    if types.is_dictionary(kind):
        return not inside and not types.is_nested(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(arrow, kind.value_type, inside=True)
    if types.is_struct(kind):
        return all(_is_plain(arrow, field.type, inside=True) for field in kind)
    plain = (
        types.is_primitive, types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_null,
        types.is_decimal, types.is_fixed_size_binary,
    )  # fmt: skip
    return any(check(kind) for check in plain) and not types.is_interval(kind)


def read_schema(arrow: Any, file: Any) -> Any:
    """The schema of a stream."""
    with arrow.ipc.open_stream(file) as stream:
        return stream.schema


def _check_messages(arrow: Any, file: Any, path: Path) -> None:
    """An error if a message is compressed or too large; without unpacking any."""
    limit = _BATCH_PER_LINE * max_line_bytes()
    for number, message in enumerate(arrow.ipc.MessageReader.open_stream(file)):
        if message.type not in (_RECORD_BATCH, _DICTIONARY_BATCH):
            continue
        if message.body.size > limit:
            raise too_long(Place(path, number, "batch"), "this batch of rows", limit)
        if _is_compressed(message.metadata.to_pybytes(), of_dictionary=message.type == _DICTIONARY_BATCH):
            raise InputError(f"{path}: its batches are compressed, and are not unpacked. Save the table as Parquet.")


def _is_compressed(metadata: bytes, *, of_dictionary: bool) -> bool:
    """Whether a message's batch has the field `compression`; the metadata is a flatbuffer."""
    try:
        table = _field(metadata, _uint32(metadata, 0), _HEADER)
        if table is not None and of_dictionary:
            table = _field(metadata, table, _DATA)
        return table is not None and _field(metadata, table, _COMPRESSION) is not None
    except struct.error:
        raise InputError("a message of an Arrow stream is damaged.") from None


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """The place of a table that a field of another one names; None if the field is not there."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    entry = 4 + 2 * number
    if vtable < 0 or entry + 2 > struct.unpack_from("<H", metadata, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", metadata, vtable + entry)[0]
    return table + offset + _uint32(metadata, table + offset) if offset else None


def _uint32(metadata: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", metadata, place)[0])

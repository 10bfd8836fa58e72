"""The partitions of an input: groups of rows of Parquet, stretches of JSON Lines, and whole files of any other format."""

import hashlib
import io
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError, reason
from caplens.partitions.folders import FoundFile, arrow_library, find_file, find_files

_PARQUET, _LINES = (".parquet",), (".jsonl", ".ndjson")
_ROWS = 65_536
"""Rows of Parquet that make a partition, in whole groups."""
_STRETCH = 16 << 20
"""Bytes of lines that make a partition."""
_PIECE = 1 << 20
_WHOLE = 0, -1


class Partition(NamedTuple):
    """A part of an input file.

    Attributes
    ----------
    file
        Its path or URL.
    version
        Of the file: another version is another partition.
    start, stop
        The groups of rows of Parquet, or the bytes of lines; 0 and -1 for a whole file.
    """

    file: str
    version: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """A name for its output, which stays the same when other files are added to the input."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in PurePosixPath(self.file).stem)[:40]
        digest = hashlib.sha256(f"{self.file}\0{self.start}\0{self.stop}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{stem}-{self.start}-{digest[:12]}"

    def __str__(self) -> str:
        unit = "bytes" if PurePosixPath(self.file).suffix.lower() in _LINES else "groups of rows"
        return self.file if (self.start, self.stop) == _WHOLE else f"{self.file}, {unit} {self.start} to {self.stop}"


def list_partitions(place: str | Path) -> list[Partition]:
    """The partitions of a file, a folder, or files by a name with wildcards; here or in an object store."""
    return [partition for file in find_files(place) for partition in _partitions_of(file)]


def _partitions_of(file: FoundFile) -> Iterator[Partition]:
    if file.suffix in _PARQUET:
        yield from (Partition(file.name, file.version, *part) for part in _group_ranges(file))
    elif file.suffix in _LINES:
        for start in range(0, max(file.size, 1), _STRETCH):
            yield Partition(file.name, file.version, start, min(start + _STRETCH, file.size))
    else:
        yield Partition(file.name, file.version, *_WHOLE)


def _group_ranges(file: FoundFile) -> Iterator[tuple[int, int]]:
    """Groups of rows, as many together as make a partition."""
    arrow, parquet = arrow_library(), arrow_library("pyarrow.parquet")
    try:
        with file.opened() as opened:
            metadata = parquet.ParquetFile(opened).metadata
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    except arrow.ArrowException as error:
        raise InputError(f"{file.name}: not a readable Parquet file ({reason(error)}). Get it again.") from None
    start = rows = 0
    for group, size in enumerate(sizes):
        if rows and rows + size > _ROWS:
            yield start, group
            start, rows = group, 0
        rows += size
    if rows:
        yield start, len(sizes)


@contextmanager
def partition_samples(partition: Partition, columns: Mapping[str, str]) -> Iterator[Iterator[Sample]]:
    """The samples of a partition, as one would read them from a file of their own."""
    with partition_file(partition, columns) as file:
        yield iter(file or ())


@contextmanager
def partition_file(partition: Partition, columns: Mapping[str, str]) -> Iterator[SampleFile | None]:
    """The samples of a partition in a file of their own; None where there are none."""
    file = find_file(partition.file)
    if file.version != partition.version:
        raise InputError(f"{partition.file}: this file was changed while the job ran. Start it again.")
    folder = new_scratch_folder()
    path = folder / PurePosixPath(partition.file).name
    try:
        source = _local_copy(file, partition, path)
        yield SampleFile(source, columns=columns, mark_repeats=True) if source.stat().st_size else None
    except InputError as error:
        raise InputError(str(error).replace(str(path), str(partition))) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _local_copy(file: FoundFile, partition: Partition, path: Path) -> Path:
    """A file of this machine with the rows of the partition."""
    if (partition.start, partition.stop) == _WHOLE:
        if file.is_local:
            return Path(partition.file)
        with file.opened() as opened, path.open("wb") as out:
            shutil.copyfileobj(opened, out, _PIECE)
    elif file.suffix in _LINES:
        with file.opened() as opened:
            path.write_bytes(_lines(opened, partition.start, partition.stop))
    else:
        _copy_groups(file, partition, path)
    return path


def _lines(opened: io.RawIOBase, start: int, stop: int) -> bytes:
    """The lines that begin in a stretch of bytes; the last one may go on after it."""
    begin = max(start - 1, 0)
    opened.seek(begin)
    content = bytes(opened.read(stop - begin) or b"")
    if start:
        # What the stretch before has not read to its end is its own.
        _, _, content = content.partition(b"\n") if b"\n" in content else (b"", b"", b"")
        if not content:
            return b""
    while content and not content.endswith(b"\n") and (piece := bytes(opened.read(_PIECE) or b"")):
        end = piece.find(b"\n")
        content += piece if end < 0 else piece[: end + 1]
        if end >= 0:
            break
    return content if content.strip() else b""


def _copy_groups(file: FoundFile, partition: Partition, path: Path) -> None:
    arrow, parquet = arrow_library(), arrow_library("pyarrow.parquet")
    try:
        with file.opened() as opened:
            table = parquet.ParquetFile(opened)
            with parquet.ParquetWriter(path, table.schema_arrow, compression="lz4") as writer:
                for group in range(partition.start, partition.stop):
                    for batch in table.iter_batches(8192, row_groups=[group]):
                        writer.write_batch(batch)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{partition}: not a readable Parquet file ({reason(error)}). Get it again.") from None

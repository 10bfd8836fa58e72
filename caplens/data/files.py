"""Opening files: regular ones only, with compression detected from content, strict UTF-8, and a limit on the length of a line."""

import atexit
import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from caplens.data.limits import megabytes_in
from caplens.data.replacing import ensure_not_output, is_special
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError
from caplens.terminal import visible

Stream = IO[bytes] | gzip.GzipFile | io.BufferedReader | bz2.BZ2File

_DAMAGE_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Stream]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lambda raw: io.BufferedReader(_XzStream(raw), _CHUNK),
    b"BZh": bz2.BZ2File,
}
"""First bytes of a compressed file -> how it is opened."""
_MAX_LINE = "CAPLENS_MAX_LINE_MB"
"""The environment variable that changes the limit on a line, or on a JSON document."""
_DEFAULT_MAX_LINE = 32
_DOCUMENT = 4
"""How many times larger than a line a JSON document may be."""
_MOST_UNPACKED, _MOST_RATIO = 16 << 20, 200
"""A file that unpacks to more than this, and to so many times its size, was made to fill a memory or a day."""
_CHUNK = 1 << 20
_XZ_CHUNK, _XZ_UNIT = 1 << 16, 4
"""Bytes of an xz file that are read at a time: all of them are copied for each stream. Zeros between streams come in fours."""
_XZ_MEMORY = 256 << 20
"""Bytes that decompressing an xz file may take; the largest preset of xz takes a quarter of it."""
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where a shell puts what it redirects: `<(zcat captions.jsonl.gz)` is one of these."""


class _XzStream(io.RawIOBase):
    """An xz file, decompressed with a limit on memory: it says itself how much its decompression takes."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._decompressor = raw, _xz_decompressor()
        self._packed = b""
        """What was read and belongs to the next stream."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self._decompressor.eof and not self._begin_stream():
                return 0
            packed = b""
            if self._decompressor.needs_input:
                packed, self._packed = self._packed or self._raw.read(_XZ_CHUNK), b""
                if not packed:
                    raise EOFError("it ends too early")
            data = self._decompressor.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _begin_stream(self) -> bool:
        """Whether another stream follows, after zeros."""
        packed, zeros = self._decompressor.unused_data or self._raw.read(_XZ_CHUNK), 0
        while packed and not (rest := packed.lstrip(b"\0")):
            zeros += len(packed)
            packed = self._raw.read(_XZ_CHUNK)
        if packed:
            zeros += len(packed) - len(rest)
            self._packed, self._decompressor = rest, _xz_decompressor()
        if zeros % _XZ_UNIT:
            raise EOFError("there are odd bytes after its end")
        return bool(packed)


def _xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def max_line_bytes() -> int:
    """The most bytes that a line may have: a small compressed file can hold a line that fills the memory."""
    return megabytes_in(_MAX_LINE, _DEFAULT_MAX_LINE)


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with `~` replaced by the user's folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: the folder of this user is not known. Write the whole path.") from None


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """A regular file, open for reading; an OSError for anything else. Opening a pipe would wait, and a device never ends.

    Raises an `InputError` if it is to be written by the command that is running.
    """
    ensure_not_output(path)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(None, "it is a folder", str(path))
    raise OSError(None, "it is a pipe or a device, not a file", str(path))


def check_utf8(name: str, where: Path) -> None:
    """An error for a name of bytes that are not UTF-8, which no result could hold."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: the file {visible(name)!r} has a name that is not UTF-8. Rename it.") from None


class Place(NamedTuple):
    """A position in a file, for error messages."""

    file: Path
    number: int | None = None
    unit: str = "line"

    def __str__(self) -> str:
        return str(self.file) if self.number is None else f"{self.file}, {self.unit} {self.number}"


class Source:
    """A file open for reading; gzip, xz and bzip2 are decompressed on the fly."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._raw = open_regular(self.path)
            start = self._raw.read(8)
            self._raw.seek(0)
        except FileNotFoundError:
            raise InputError(f"{self.path}: there is no such file. Check the path.") from None
        except IsADirectoryError:
            raise InputError(f"{self.path}: this is a folder; a file is needed.") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None
        self.size = os.fstat(self._raw.fileno()).st_size
        decompressor = next((factory for magic, factory in _DECOMPRESSORS.items() if start.startswith(magic)), None)
        self.packed = decompressor is not None
        self.stream: Stream = decompressor(self._raw) if decompressor else self._raw

    def position(self) -> int:
        """Bytes read from disk so far, before decompression."""
        return self._raw.tell() if not self._raw.closed else self.size

    def close(self) -> None:
        self.stream.close()
        self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def read(self, size: int = -1) -> bytes:
        try:
            return self.stream.read(size)
        except _DAMAGE_ERRORS as error:
            self._raise_damaged(error)

    def content(self) -> bytes:
        """The whole file; an error if it is larger than the limit once it is decompressed."""
        limit = _DOCUMENT * max_line_bytes()
        data = self.read(limit + 1)
        self.check_ratio(len(data))
        if len(data) > limit:
            raise too_long(Place(self.path), "the document", limit)
        return data

    def check_ratio(self, unpacked: int) -> None:
        """Raise an error if a compressed file turns out to be many times larger than it is on disk."""
        if self.packed and unpacked > _MOST_UNPACKED and unpacked > _MOST_RATIO * self.size:
            raise InputError(f"{self.path}: it unpacks to more than {_MOST_RATIO} times its size. Unpack it first.")

    def text(self) -> str:
        """The whole file as text."""
        data = self.content()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _not_utf8(Place(self.path, data.count(b"\n", 0, error.start) + 1), error) from None

    def first_line(self) -> bytes:
        """The start of the file up to its first line feed, and somewhat more."""
        limit = _DOCUMENT * max_line_bytes()
        chunks: list[bytes] = []
        size = 0
        while chunk := self.read(_CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if b"\n" in chunk:
                break
            if size > limit:
                raise too_long(Place(self.path, 1), "the line", limit)
        return b"".join(chunks)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers, split at line feeds only: captions may contain other line separators."""
        limit = max_line_bytes()
        number = unpacked = 0
        try:
            while line := self.stream.readline(limit + 1):
                number += 1
                unpacked += len(line)
                self.check_ratio(unpacked)
                if len(line) > limit:
                    raise too_long(Place(self.path, number), "the line", limit)
                yield number, (line.decode("utf-8-sig") if number == 1 else line.decode())
        except UnicodeDecodeError as error:
            raise _not_utf8(Place(self.path, number), error) from None
        except _DAMAGE_ERRORS as error:
            self._raise_damaged(error)

    def _raise_damaged(self, error: Exception) -> NoReturn:
        raise InputError(f"{self.path}: the file is damaged or cut short ({error}). Get it again.") from None


def on_disk(path: str | os.PathLike[str]) -> Path:
    """`path` itself, or a copy if it is `-` (standard input) or a stream of the shell: files are read more than once."""
    if str(path) == "-":
        return _copy_of(sys.stdin.buffer, "standard input")
    if str(path).startswith(_STREAMS) and is_special(path):
        with Path(path).open("rb") as stream:
            return _copy_of(stream, str(path))
    return Path(path)


def _copy_of(stream: IO[bytes], name: str) -> Path:
    """What a stream holds, in a file. One whose line passes the limit, as a device without end does, is refused."""
    folder = new_scratch_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    limit, line = _DOCUMENT * max_line_bytes(), 0
    copy = folder / Path(name).name
    try:
        with copy.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
                _, feed, rest = chunk.rpartition(b"\n")
                line = len(rest) if feed else line + len(rest)
                if line > limit:
                    raise too_long(Place(Path(name)), "a line", limit)
    except OSError as error:
        raise InputError(f"{name}: cannot be read, or copied to {folder} ({error.strerror or error}).") from None
    return copy


def too_long(place: Place, what: str, limit: int) -> InputError:
    return InputError(
        f"{place}: {what} is longer than {limit >> 20} MB, which is more than is read at once. If it is meant to be, raise"
        f" the limit with the environment variable {_MAX_LINE}."
    )


def _not_utf8(place: Place, error: UnicodeDecodeError) -> InputError:
    byte = error.object[error.start]
    return InputError(
        f"{place}: not UTF-8 (byte 0x{byte:02x}). Convert the file, e.g. with: iconv -f latin1 -t utf-8 {place.file.name}"
    )

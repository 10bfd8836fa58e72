"""Opening files with compression detected from content, strict UTF-8 reading, and atomic writing."""

import atexit
import bz2
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from caplens.errors import InputError

Stream = IO[bytes] | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File

_DAMAGE_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Stream]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
"""First bytes of a compressed file -> how it is opened."""


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
            self._raw = self.path.open("rb")
        except FileNotFoundError:
            raise InputError(f"{self.path}: there is no such file. Check the path.") from None
        except IsADirectoryError:
            raise InputError(f"{self.path}: this is a folder; a file is needed.") from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}).") from None
        start = self._raw.read(8)
        self._raw.seek(0)
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

    def text(self) -> str:
        """The whole file as text."""
        data = self.read()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _not_utf8(Place(self.path, data.count(b"\n", 0, error.start) + 1), error) from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers, split at line feeds only: captions may contain other line separators."""
        number = 0
        try:
            for number, line in enumerate(self.stream, 1):
                yield number, (line.decode("utf-8-sig") if number == 1 else line.decode())
        except UnicodeDecodeError as error:
            raise _not_utf8(Place(self.path, number), error) from None
        except _DAMAGE_ERRORS as error:
            self._raise_damaged(error)

    def _raise_damaged(self, error: Exception) -> NoReturn:
        raise InputError(f"{self.path}: the file is damaged or cut short ({error}). Get it again.") from None


def on_disk(path: str | os.PathLike[str]) -> Path:
    """`path` itself, or a temporary copy if it is a pipe or `-` (standard input): files are read more than once."""
    if str(path) != "-" and not _is_special(Path(path)):
        return Path(path)
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / "stdin"
    with copy.open("wb") as out:
        if str(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, out)
        else:
            with Path(path).open("rb") as pipe:
                shutil.copyfileobj(pipe, out)
    return copy


def _not_utf8(place: Place, error: UnicodeDecodeError) -> InputError:
    byte = error.object[error.start]
    return InputError(
        f"{place}: not UTF-8 (byte 0x{byte:02x}). Convert the file, e.g. with: iconv -f latin1 -t utf-8 {place.file.name}"
    )


def ensure_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error now, not after hours of work, if `path` cannot be written."""
    if not _is_special(Path(path)):
        _temporary_beside(Path(path).resolve()).unlink()


def ensure_apart(output: str | os.PathLike[str] | None, *paths: str | os.PathLike[str] | None) -> None:
    """Raise an error if `output` is one of `paths`, which are also read or written."""
    for path in paths:
        if output is not None and path is not None and Path(output).resolve() == Path(path).resolve():
            raise InputError(f"{output}: this file is named twice, and writing it would destroy it. Choose another output.")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it becomes `path` only if the block succeeds.

    A symbolic link is followed. A device or pipe gets the content once it is complete.
    """
    target = Path(path).resolve()
    special = _is_special(target)
    temporary = _temporary_beside(Path(tempfile.gettempdir()) / "output" if special else target)
    try:
        yield temporary
        if special:
            with temporary.open("rb") as content, target.open("wb") as out:
                shutil.copyfileobj(content, out)
        else:
            os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    """Whether `path` is a device, pipe or socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _temporary_beside(target: Path) -> Path:
    if target.suffix in (".gz", ".xz", ".bz2"):
        raise InputError(f"{target}: compressed output is not supported; leave off {target.suffix}.")
    if target.is_dir():
        raise InputError(f"{target}: this is a folder; name a file to write to.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        # mkstemp creates files that only their owner can read; results get the user's default permissions.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.close(handle)
    except OSError as error:
        why = "the folder does not exist" if not target.parent.is_dir() else (error.strerror or str(error))
        raise InputError(f"{target}: cannot be written ({why}). Choose another output.") from None
    return Path(name)

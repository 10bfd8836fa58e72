"""Vectors on disk, by content: one SQLite file for each model, a row for each image or text.

SQLite's write-ahead log makes every batch that was written survive `kill -9`, and lets several processes share a file. Each row
carries a checksum; a row, or a whole file, that is damaged counts as missing and is made again.
"""

import shutil
import sqlite3
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from caplens.backbones.base import Flags, Vectors
from caplens.data.cache import cache_folder
from caplens.errors import CaplensError, InputError
from caplens.progress import note, track

T = TypeVar("T")

_SUFFIX = ".vectors"
_PATIENCE = 60
"""Seconds to wait for another process that is writing."""
_ASKED_AT_ONCE = 500
_OUTSIDE = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH,
}  # fmt: skip
"""Errors for which the file is not to blame."""
_TABLES = """
    CREATE TABLE IF NOT EXISTS vectors (
        key BLOB PRIMARY KEY, vector BLOB NOT NULL, cut INTEGER NOT NULL, checksum INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS about (model TEXT NOT NULL, fingerprint TEXT NOT NULL, used REAL NOT NULL);
"""


class Found(NamedTuple):
    """What a shelf has of the keys asked for, in their order; vectors are zero where `present` is false."""

    vectors: Vectors
    present: Flags
    cut: Flags
    """Texts that were longer than the model takes; images unlike those that it was trained on."""


class Shelf:
    """The vectors of one model."""

    def __init__(self, path: Path, model: str, fingerprint: str, used: float | None = None) -> None:
        """`used` is when it was last used, where this is no use of it."""
        self.path, self._model, self._fingerprint, self._used = path, model, fingerprint, used
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Which of the keys there are, without looking at their vectors."""

        def question(connection: sqlite3.Connection) -> set[bytes]:
            return {key for key, *_ in _select(connection, "key", keys)}

        return self._ask(question)

    def get(self, keys: Sequence[bytes]) -> Found:
        """The vectors of distinct keys."""

        def question(connection: sqlite3.Connection) -> list[tuple[bytes, bytes, int]]:
            rows = _select(connection, "key, vector, cut, checksum", keys)
            return [(key, vector, cut) for key, vector, cut, checksum in rows if _checksum(key, vector, cut) == checksum]

        rows = self._ask(question)
        place = {key: number for number, key in enumerate(keys)}
        numbers = np.fromiter((place[key] for key, _, _ in rows), dtype=np.int64, count=len(rows))
        present, cut = np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=bool)
        vectors = np.zeros((len(keys), len(rows[0][1]) // 4 if rows else 0), dtype=np.float32)
        if rows:
            present[numbers] = True
            cut[numbers] = [flag for _, _, flag in rows]
            vectors[numbers] = np.frombuffer(b"".join([vector for _, vector, _ in rows]), dtype="<f4").reshape(len(rows), -1)
        return Found(vectors, present, cut)

    def put(self, keys: Sequence[bytes], vectors: Vectors, cut: Sequence[bool]) -> None:
        """Keep vectors; they are safe when this returns."""
        rows = []
        for key, vector, flag in zip(keys, vectors.astype("<f4", copy=False), cut, strict=True):
            data = vector.tobytes()
            rows.append((key, data, int(flag), _checksum(key, data, flag)))

        def question(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

        self._ask(question)

    def verify(self) -> tuple[int, int]:
        """How many vectors there are, and how many of them were damaged and have been removed."""

        def question(connection: sqlite3.Connection) -> tuple[int, int]:
            (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
            rows = connection.execute("SELECT key, vector, cut, checksum FROM vectors")
            damaged = [
                (key,)
                for key, vector, cut, checksum in track(rows, f"checking {self._model}", count)
                if _checksum(key, vector, cut) != checksum
            ]
            with connection:
                connection.executemany("DELETE FROM vectors WHERE key = ?", damaged)
            return count, len(damaged)

        return self._ask(question)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """The answer of the file. One that turns out to be damaged is replaced by an empty one, and asked again."""
        with self._lock:
            return self._answer(question)

    def _answer(self, question: Callable[[sqlite3.Connection], T]) -> T:
        damaged = False
        while True:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return question(self._connection)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if damaged or not _tells_damage(error):
                    raise CaplensError(
                        f"{self.path}: the store of vectors cannot be used ({error}). Choose another place with --store, or keep"
                        " none with --no-store."
                    ) from None
                damaged = True
            self._remove()

    def begin_anew(self) -> None:
        """Throw away what is there."""
        with self._lock:
            self._remove()

    def _remove(self) -> None:
        note(f"{self.path}: the store of vectors is damaged; it begins anew")
        self.close()
        remove(self.path)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
        weakref.finalize(self, connection.close)
        # A page should hold several vectors.
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_TABLES)
        with connection:
            connection.execute("DELETE FROM about")
            connection.execute("INSERT INTO about VALUES (?, ?, ?)", (self._model, self._fingerprint, self._used or time.time()))
        return connection


def _select(connection: sqlite3.Connection, columns: str, keys: Sequence[bytes]) -> Iterator[Any]:
    for start in range(0, len(keys), _ASKED_AT_ONCE):
        some = keys[start : start + _ASKED_AT_ONCE]
        yield from connection.execute(f"SELECT {columns} FROM vectors WHERE key IN ({','.join('?' * len(some))})", some)


def _checksum(key: bytes, vector: bytes, cut: int) -> int:
    """-1, which is no checksum, of what cannot have been written here."""
    try:
        return zlib.crc32(vector, zlib.crc32(key, int(cut))) if len(vector) % 4 == 0 else -1
    except (TypeError, ValueError):
        return -1


def _tells_damage(error: Exception) -> bool:
    """A damaged file may lack a table or hold text that is none; only what comes from outside is no damage."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _OUTSIDE


def remove(path: Path) -> None:
    """A file of vectors and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class ShelfInfo(NamedTuple):
    model: str | None
    """None where the file is damaged."""
    fingerprint: str
    vectors: int
    bytes: int
    used: float
    """When it was last opened, in seconds since 1970."""
    path: Path


class Store:
    """A folder with a file of vectors for each model. It is made when there is something to keep."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()

    @classmethod
    def temporary(cls) -> "Store":
        """One that is gone with the process."""
        store = cls(tempfile.mkdtemp(prefix="caplens-"))
        weakref.finalize(store, shutil.rmtree, store.folder, ignore_errors=True)
        return store

    def shelf(self, model: str, fingerprint: str) -> Shelf:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.folder}: vectors cannot be stored there ({error.strerror}). Choose another place with --store, or keep"
                " none with --no-store."
            ) from None
        return Shelf(self.folder / f"{fingerprint[:32]}{_SUFFIX}", model, fingerprint)

    def models(self) -> list[ShelfInfo]:
        """What is kept, last used first."""
        found = [self._about(path) for path in self.folder.glob(f"*{_SUFFIX}")]
        return sorted(found, key=lambda about: -about.used)

    def remove(self, about: ShelfInfo) -> None:
        try:
            remove(about.path)
        except OSError as error:
            raise InputError(f"{about.path}: cannot be removed ({error.strerror}).") from None

    def verify(self) -> Iterator[tuple[ShelfInfo, int, int]]:
        """For each model: how many vectors were there, and how many of them were damaged and have been removed.

        Of a file that is damaged as a whole nobody knows the number: it is removed, and -1 stands for all.
        """
        for about in self.models():
            if about.model is None:
                self.remove(about)
                yield about, 0, -1
                continue
            shelf = Shelf(about.path, about.model, about.fingerprint, about.used)
            yield about, *shelf.verify()
            shelf.close()

    def _about(self, path: Path) -> ShelfInfo:
        size = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
        # In a folder that cannot be written SQLite reads only files that it may take for unchanging.
        for mode in ("mode=ro", "immutable=1"):
            try:
                with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_PATIENCE)) as connection:
                    model, fingerprint, used = connection.execute("SELECT model, fingerprint, used FROM about").fetchone()
                    (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
                    return ShelfInfo(str(model), str(fingerprint), count, size, float(used), path)
            except (sqlite3.Error, TypeError, ValueError):
                continue
        return ShelfInfo(None, path.name.removesuffix(_SUFFIX), 0, size, path.stat().st_mtime, path)


def default_store() -> Store:
    """The one in the user's cache."""
    return Store(cache_folder() / "vectors")

"""A file of vectors: those of one model, by content, in SQLite, a row for each image or text.

A vector stands for a whole image or text; a matrix has a row for each frame of a video or token of a text.

SQLite's write-ahead log makes every batch that was written survive `kill -9`, and lets several processes share a file. Each row
carries a checksum; a row, or a whole file, that is damaged is treated as missing and computed again.
"""

import os
import shutil
import sqlite3
import time
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from caplens.arrays import Flags, Vectors
from caplens.data.files import open_regular
from caplens.data.replacing import ensure_not_output
from caplens.data.temporary import temporary_file
from caplens.errors import CaplensError, option
from caplens.progress import logger, track

T = TypeVar("T")

LOCK_TIMEOUT = 60
"""Seconds to wait for another process that is writing."""
_LOCK_PAUSE = 0.01
_KEYS_PER_QUERY = 500
_VERSIONS, _KNOWN_VERSIONS = slice(18, 20), (1, 2)
"""Where a file of SQLite says which version of the format it has, for writing and for reading."""
SQLITE = b"SQLite format 3\0"
"""What a file of SQLite begins with."""
_PAGE_SIZE = 16384
_DAMAGED = ".damaged"
_SMALL_STEPS = 512
"""Rows that are tried one by one after a damaged one."""
_ENVIRONMENT_ERRORS = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH,
}  # fmt: skip
"""Errors of the environment (permissions, locks, a full disk), not of the file."""
_TABLES = """
    CREATE TABLE IF NOT EXISTS vectors (
        key BLOB PRIMARY KEY, vector BLOB NOT NULL, cut INTEGER NOT NULL, checksum INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS matrices (
        key BLOB PRIMARY KEY, matrix BLOB NOT NULL, rows INTEGER NOT NULL, checksum INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS about (model TEXT NOT NULL, fingerprint TEXT NOT NULL, used REAL NOT NULL);
"""


COLUMNS = {"vectors": "key, vector, cut, checksum", "matrices": "key, matrix, rows, checksum"}
"""Table -> the columns of an entry."""


Entry = tuple[bytes, bytes, int]
"""Key, numbers as bytes, and whether a text was cut, or how many rows a matrix has."""


class StoredVectors(NamedTuple):
    """The vectors of the keys asked for, in their order; zero where `present` is false."""

    vectors: Vectors
    present: Flags
    flags: Flags
    """Texts that were truncated; images that are out of the model's domain."""


class ModelVectors:
    """The vectors and matrices of one model."""

    def __init__(self, path: Path, model: str, fingerprint: str, used: float | None = None) -> None:
        """`used` keeps the time of the last use, so that inspecting a store does not change it."""
        self.path, self._model, self._fingerprint, self._used = path, model, fingerprint, used
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    def present(self, keys: Sequence[bytes], table: str = "vectors") -> set[bytes]:
        """Which of the keys have a vector, or an entry of another table, without checking it."""

        def query(connection: sqlite3.Connection) -> set[bytes]:
            return {key for key, *_ in _select(connection, "key", table, keys)}

        return self._run(query)

    def get(self, keys: Sequence[bytes]) -> StoredVectors:
        """The vectors of distinct keys."""

        rows = self._run(lambda connection: _intact(_select(connection, COLUMNS["vectors"], "vectors", keys)))
        lengths = Counter(len(vector) for _, vector, _ in rows)
        length = lengths.most_common(1)[0][0] if rows else 0
        if len(lengths) > 1:
            # A vector of another length than most is damaged.
            rows = [row for row in rows if len(row[1]) == length]
        place = {key: number for number, key in enumerate(keys)}
        numbers = np.fromiter((place[key] for key, _, _ in rows), dtype=np.int64, count=len(rows))
        present, flags = np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=bool)
        vectors = np.zeros((len(keys), length // 4), dtype=np.float32)
        if rows:
            present[numbers] = True
            flags[numbers] = [flag for _, _, flag in rows]
            vectors[numbers] = np.frombuffer(b"".join([vector for _, vector, _ in rows]), dtype="<f4").reshape(len(rows), -1)
        return StoredVectors(vectors, present, flags)

    def put(self, keys: Sequence[bytes], vectors: Vectors, flags: Sequence[bool]) -> None:
        """Keep vectors. They are committed when this returns, and survive a killed process."""
        self._insert(
            "vectors",
            [(key, vector.tobytes(), int(flag)) for key, vector, flag in zip(keys, _stored(vectors), flags, strict=True)],
        )

    def get_matrices(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The matrices of those keys that have one."""
        rows = self._run(lambda connection: _intact(_select(connection, COLUMNS["matrices"], "matrices", keys)))
        return {key: np.frombuffer(matrix, dtype="<f4").reshape(count, -1) for key, matrix, count in rows}

    def put_matrices(self, matrices: Mapping[bytes, Vectors]) -> None:
        """Keep a matrix per key, committed when this returns."""
        self._insert("matrices", [(key, _stored(matrix).tobytes(), len(matrix)) for key, matrix in matrices.items()])

    def entries(self, table: str, count: int) -> Iterator[list[Entry]]:
        """All intact entries of `vectors` or `matrices`, so many at a time."""
        last = 0

        def query(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(
                f"SELECT rowid, {COLUMNS[table]} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?", (last, count)
            ).fetchall()

        while rows := self._run(query):
            last = rows[-1][0]
            yield _intact(row[1:] for row in rows)

    def add(self, table: str, entries: Sequence[Entry]) -> int:
        """Keep those entries that are not there yet; returns how many."""
        checked = [(*entry, _checksum(*entry)) for entry in entries]

        def query(connection: sqlite3.Connection) -> int:
            with connection:
                before = connection.total_changes
                connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?, ?)", checked)
                return connection.total_changes - before

        return self._run(query)

    def _insert(self, table: str, rows: Sequence[Entry]) -> None:
        checked = [(*row, _checksum(*row)) for row in rows]

        def query(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", checked)

        self._run(query)

    def verify(self) -> tuple[int, int]:
        """How many entries there are, and how many of them were damaged and have been removed.

        Where the file itself is damaged, the entries that can be read are kept, and the second number is -1.
        """

        def query(connection: sqlite3.Connection) -> tuple[int, int]:
            total = removed = 0
            if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the file is damaged")
            for table, columns in COLUMNS.items():
                (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                rows = track(connection.execute(f"SELECT {columns} FROM {table}"), f"checking {self._model}", count)
                damaged = [(key,) for key, data, number, checksum in rows if _checksum(key, data, number) != checksum]
                with connection:
                    connection.executemany(f"DELETE FROM {table} WHERE key = ?", damaged)
                total, removed = total + count, removed + len(damaged)
            return total, removed

        with self._lock:
            try:
                return query(self._connected())
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if not self._is_damage(error):
                    raise self._unusable(error) from None
                return self._rewrite(), -1

    def _rewrite(self) -> int:
        """Put a new file with what can be read in the place of this one, complete or not at all; returns how much that is.

        Where that is nothing, the damaged file is kept under another name.
        """
        self.close()
        rows = _salvaged(self.path)
        fresh = ModelVectors(temporary_file(self.path.parent, self.path.name), self._model, self._fingerprint, self._used)
        try:
            for table, entries in rows.items():
                fresh._insert(table, entries)
            fresh.close()
            if not any(rows.values()):
                os.replace(self.path, self.path.with_name(self.path.name + _DAMAGED))
            _remove_side_files(self.path)
            os.replace(fresh.path, self.path)
        finally:
            fresh.close()
            remove(fresh.path)
        return sum(map(len, rows.values()))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query. A file that turns out to be damaged is replaced by an empty one, and the query run again."""
        with self._lock:
            return self._run_locked(query)

    def _run_locked(self, query: Callable[[sqlite3.Connection], T]) -> T:
        damaged = False
        while True:
            try:
                return query(self._connected())
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if damaged or not self._is_damage(error):
                    raise self._unusable(error) from None
                damaged = True
            logger.warning(f"{self.path}: the store of vectors is damaged; what can be read of it is kept")
            self._rewrite()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _is_damage(self, error: Exception) -> bool:
        """SQLite takes a file whose format is of a version that it does not know for one that may only be read."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_READONLY:
            return is_damage(error)
        with open_regular(self.path) as file:
            header = file.read(_VERSIONS.stop)
        return any(version not in _KNOWN_VERSIONS for version in header[_VERSIONS])

    def _unusable(self, error: Exception) -> CaplensError:
        return CaplensError(
            f"{self.path}: the store of vectors cannot be used ({error}). Choose another folder with"
            f" {option('store')}, or keep no vectors with {option('keep_store', 'False')}."
        )

    def reset(self) -> None:
        """Delete the file; the next query creates an empty one."""
        with self._lock:
            self._remove()

    def _remove(self) -> None:
        logger.info(f"{self.path}: the store of vectors is damaged and is reset")
        self.close()
        remove(self.path)

    def _open(self) -> sqlite3.Connection:
        ensure_not_output(self.path)
        connection = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT, check_same_thread=False)
        weakref.finalize(self, connection.close)
        # A page should hold several vectors.
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        use_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        # In one transaction, so that nobody finds tables without the row that says whose they are.
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute("DELETE FROM about")
            connection.execute("INSERT INTO about VALUES (?, ?, ?)", (self._model, self._fingerprint, self._used or time.time()))
        return connection


def use_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite does not wait for another process here, whatever its timeout, so this does."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_PAUSE)


def _select(connection: sqlite3.Connection, columns: str, table: str, keys: Sequence[bytes]) -> Iterator[Any]:
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        part = keys[start : start + _KEYS_PER_QUERY]
        yield from connection.execute(f"SELECT {columns} FROM {table} WHERE key IN ({','.join('?' * len(part))})", part)


def _intact(rows: Iterable[tuple[bytes, bytes, int, int]]) -> list[Entry]:
    """The rows whose checksum is right."""
    return [(key, data, number) for key, data, number, checksum in rows if _checksum(key, data, number) == checksum]


def _salvaged(path: Path) -> dict[str, list[Entry]]:
    """Table -> the intact entries of a damaged file; where there are none, of a copy whose header is as we write it."""
    rows = {table: _entries(path, table) for table in COLUMNS}
    if any(rows.values()):
        return rows
    copy = temporary_file(path.parent, path.name)
    try:
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            for place, content in _header(size).items():
                file.seek(place)
                file.write(content)
        return {table: _entries(copy, table) for table in COLUMNS}
    finally:
        remove(copy)


def _header(size: int) -> dict[int, bytes]:
    """Place -> what a file of SQLite that we wrote has there: the format, and how many pages there are, none of them free."""
    zero = bytes(4)
    pages = (size // _PAGE_SIZE).to_bytes(4, "big")
    # The number of pages counts only where the two counters of changes, at 24 and 92, agree.
    sizes = _PAGE_SIZE.to_bytes(2, "big") + b"\x01\x01\x00\x40\x20\x20" + zero + pages + zero + zero
    return {0: SQLITE + sizes, 44: b"\0\0\0\x04", 52: zero, 56: b"\0\0\0\x01", 64: zero, 92: zero}


def _entries(path: Path, table: str) -> list[Entry]:
    """The intact entries of a damaged file, as far as they can be read. Indexes, which may be what is damaged, are not used."""
    rows: list[tuple[bytes, bytes, int, int]] = []
    query = f"SELECT rowid, {COLUMNS[table]} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
    # A row takes more than a byte.
    first, failures, last = 0, 0, path.stat().st_size
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=LOCK_TIMEOUT)) as connection:
        while first <= last:
            try:
                for rowid, key, data, number, checksum in connection.execute(query, (first,)):
                    rows.append((key, data, number, checksum))
                    first, failures = rowid + 1, 0
                break
            except (sqlite3.Error, UnicodeDecodeError) as error:
                logger.debug(f"{path}: {table} cannot be read at row {first} ({error})")
                # Go on after what is damaged; where that is much, in ever larger steps.
                failures += 1
                first += 1 << max(0, failures - _SMALL_STEPS)
    return _intact(rows)


def _stored(numbers: Vectors) -> Vectors:
    """As little-endian float32, the byte order of the file."""
    return numbers.astype("<f4", copy=False)


def _checksum(key: bytes, data: bytes, number: int) -> int:
    """CRC-32 of an entry; -1, which is never a CRC, for malformed rows."""
    try:
        return zlib.crc32(data, zlib.crc32(key, int(number))) if len(data) % 4 == 0 else -1
    except (TypeError, ValueError):
        return -1


def is_damage(error: Exception) -> bool:
    """A damaged file may lack a table or hold bytes that are not text; errors of the environment and of use are not damage."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return False
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _ENVIRONMENT_ERRORS


def remove(path: Path) -> None:
    """Delete a file of vectors and its SQLite side files."""
    path.unlink(missing_ok=True)
    _remove_side_files(path)


def _remove_side_files(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

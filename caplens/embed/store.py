"""Vectors on disk: a folder with one file for each model."""

import os
import re
import shutil
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, suppress
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from caplens.data.cache import cache_folder
from caplens.data.files import expanded, open_regular
from caplens.data.temporary import new_scratch_folder
from caplens.embed.vector_file import COLUMNS, LOCK_TIMEOUT, SQLITE, ModelVectors, is_damage, remove
from caplens.errors import InputError, option

_SUFFIX = ".vectors"
_NAME = re.compile(f"[0-9a-f]{{32}}{re.escape(_SUFFIX)}")
_UNKNOWN = "unknown"
"""The model of a file whose row about it is damaged, until it is used again."""
_UNFINISHED, _FOREIGN = "it is being made", "it is not a store of caplens"


class ModelVectorsInfo(NamedTuple):
    model: str | None
    """None where the file is damaged, or cannot be opened."""
    fingerprint: str
    vectors: int
    """How many entries there are: a video or the words of a text count as one."""
    bytes: int
    used: float
    """When it was last opened, in seconds since 1970."""
    path: Path
    unopened: str | None = None
    """Why the file could not be opened, if that is a matter of rights or of the system, and not of its content."""


class Store:
    """A folder with one file of vectors per model. It is created when the first model is opened."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = expanded(folder)

    @classmethod
    def temporary(cls) -> "Store":
        """A store in a temporary folder, deleted with the object or at exit."""
        store = cls(new_scratch_folder())
        weakref.finalize(store, shutil.rmtree, store.folder, ignore_errors=True)
        return store

    def model_vectors(self, model: str, fingerprint: str) -> ModelVectors:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.folder}: vectors cannot be stored there ({error.strerror}). Choose another folder with"
                f" {option('store')}, or keep no vectors with {option('keep_store', 'False')}."
            ) from None
        return ModelVectors(self.folder / f"{fingerprint[:32]}{_SUFFIX}", model, fingerprint)

    def models(self) -> list[ModelVectorsInfo]:
        """The stored models, last used first."""
        infos = [self._about(path) for path in self.folder.glob(f"*{_SUFFIX}") if path.is_file()]
        return sorted(infos, key=lambda about: -about.used)

    def remove(self, about: ModelVectorsInfo) -> None:
        try:
            remove(about.path)
        except OSError as error:
            raise InputError(f"{about.path}: cannot be removed ({error.strerror}).") from None

    def verify(self) -> Iterator[tuple[ModelVectorsInfo, int, int]]:
        """For each model: how many vectors were there, and how many of them were damaged and have been removed.

        The intact entries of a damaged file are kept, and their number is reported with -1, since that of the others is unknown.
        A file that could not be opened, for want of rights say, is reported as (0, 0) and stays: it may be in order.
        """
        for about in self.models():
            if about.unopened is not None:
                yield about, 0, 0
                continue
            vectors = ModelVectors(about.path, about.model or _UNKNOWN, about.fingerprint, about.used)
            count, broken = vectors.verify()
            vectors.close()
            if about.model is None and not count:
                self.remove(about)
            yield about, count, broken

    def _about(self, path: Path) -> ModelVectorsInfo:
        size = 0
        for part in path.parent.glob(f"{path.name}*"):
            # The side files of SQLite go when the last process closes the store.
            with suppress(FileNotFoundError):
                size += part.stat().st_size
        try:
            with open_regular(path) as file:
                start, used = file.read(len(SQLITE)), os.fstat(file.fileno()).st_mtime
        except OSError as error:
            return ModelVectorsInfo(None, path.name.removesuffix(_SUFFIX), 0, size, 0.0, path, error.strerror)
        # Another process may be making the file; and a file that is none of ours is not for us to remove.
        unopened: str | None = _foreign(path, start)
        if unopened is not None:
            return ModelVectorsInfo(None, path.name.removesuffix(_SUFFIX), 0, size, used, path, unopened)
        # In a read-only folder SQLite opens a file with a write-ahead log only with immutable=1.
        for mode in ("mode=ro", "immutable=1"):
            try:
                with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=LOCK_TIMEOUT)) as connection:
                    tables = _objects(connection)
                    if "about" not in tables:
                        unopened = _FOREIGN if tables else _UNFINISHED
                        return ModelVectorsInfo(None, path.name.removesuffix(_SUFFIX), 0, size, used, path, unopened)
                    if not _has_our_tables(connection, tables):
                        return ModelVectorsInfo(None, path.name.removesuffix(_SUFFIX), 0, size, used, path, _FOREIGN)
                    model, fingerprint, used = connection.execute("SELECT model, fingerprint, used FROM about").fetchone()
                    counts = [
                        connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in COLUMNS if table in tables
                    ]
                    count = sum(number for (number,) in counts)
                    return ModelVectorsInfo(str(model), str(fingerprint), count, size, float(used), path)
            except (sqlite3.Error, TypeError, ValueError) as error:
                unopened = None if is_damage(error) else str(error)
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
                    # A table or column that we use is not there.
                    unopened = _FOREIGN
        return ModelVectorsInfo(None, path.name.removesuffix(_SUFFIX), 0, size, path.stat().st_mtime, path, unopened)


def _objects(connection: sqlite3.Connection) -> set[str]:
    """Tables and indexes by name. A view, which would run what somebody else wrote, has a name that is none of ours."""
    rows = connection.execute("SELECT name, type FROM sqlite_master").fetchall()
    return {f"{name} (view)" if kind == "view" else name for name, kind in rows}


def _has_our_tables(connection: sqlite3.Connection, tables: set[str]) -> bool:
    """Whether a database has no tables but ours, with no columns but ours: one of others stays as it is, whatever its name."""
    if any(name not in ("about", *COLUMNS) and not name.startswith("sqlite_") for name in tables):
        return False
    return all(
        {column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")} == set(columns.split(", "))
        for table, columns in COLUMNS.items()
        if table in tables
    )


def _foreign(path: Path, start: bytes) -> str | None:
    """Why a file is not a store of ours, whole or damaged, if it is not."""
    if not start:
        return _UNFINISHED
    return None if _NAME.fullmatch(path.name) and start == SQLITE else _FOREIGN


def default_store() -> Store:
    """The store in the user's cache folder."""
    return Store(cache_folder() / "vectors")

"""Translations, and captions of images, on disk by content: nothing is computed twice, and a killed run goes on."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path

from caplens.data.cache import cache_folder
from caplens.data.files import expanded
from caplens.data.temporary import new_scratch_folder
from caplens.embed.vector_file import use_log
from caplens.errors import InputError
from caplens.translation.base import Hypothesis

_SECONDS = 60
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS translations (key BLOB PRIMARY KEY, content TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID"
)
_FILE = "translations.sqlite"


class HypothesisStore:
    """A file of hypotheses.

    Parameters
    ----------
    folder
        Its folder; by default that of the cache.
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.path = (cache_folder() if folder is None else expanded(folder)) / _FILE

    @classmethod
    def beside_vectors(cls, store: object, keep: bool = True) -> "HypothesisStore":
        """The file in the folder that was named for vectors, or in the cache; in a temporary folder if nothing is to be kept."""
        if not keep:
            return cls(new_scratch_folder())
        return cls(store if isinstance(store, str | PathLike) else None)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, list[Hypothesis]]:
        """Those that there are. A damaged entry counts as missing."""
        if not self.path.is_file():
            return {}
        try:
            return self._read(keys)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, list[Hypothesis]]:
        hypotheses: dict[bytes, list[Hypothesis]] = {}
        with closing(self._connect()) as connection:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                for key, content, digest in connection.execute(
                    f"SELECT key, content, digest FROM translations WHERE key IN ({marks})", part
                ):
                    if isinstance(content, bytes) and _digest(content) == digest:
                        hypotheses[key] = [Hypothesis(str(text), score) for text, score in json.loads(content)]
        return hypotheses

    def put(self, entries: Mapping[bytes, Sequence[Hypothesis]]) -> None:
        """Write hypotheses; they are on disk when this returns."""
        rows = []
        for key, hypotheses in entries.items():
            content = json.dumps([list(hypothesis) for hypothesis in hypotheses], ensure_ascii=False)
            rows.append((key, content, _digest(content.encode())))
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO translations VALUES (?, ?, ?)", rows)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return InputError(f"{self.path}: another process keeps this file locked. Try again when it is done.")
        return InputError(
            f"{self.path}: translations cannot be kept there ({error}). Move the file away, or name another folder."
        )

    def _connect(self) -> sqlite3.Connection:
        try:
            Path(self.path.parent).mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=_SECONDS)
            # Bytes that are no text are damage, which the digest shows.
            connection.text_factory = bytes
            use_log(connection)
            connection.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise self._damaged(error) from None
        return connection


def translation_key(text: str, source: str, target: str, n: int, fingerprint: str) -> bytes:
    """What the translations of a text depend on."""
    return hashlib.sha256("\0".join((fingerprint, source, target, str(n), text)).encode()).digest()[:20]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:8]

"""`StudyDatabase`: where a study keeps what it asks and what people answer, in SQLite or, by its URL, in PostgreSQL."""

import hashlib
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import URL, create_engine, event, inspect, select
from sqlalchemy.exc import ArgumentError, DBAPIError, NoResultFound

from caplens.errors import CaplensError, InputError, reason
from caplens.human.settings import StudySettings
from caplens.human.tables import events, images, items, raters, study
from caplens.libraries import require

PILOT, OPEN, PAUSED, CLOSED = "pilot", "open", "paused", "closed"
STATES = (PILOT, OPEN, PAUSED, CLOSED)
OWNER = "owner"
"""Who the audit says acted, where it was no rater."""
_WAIT = 60
"""Seconds to wait for another program that writes to the database."""
_INSERTED_AT_ONCE = 500
_PLANS = "-c plan_cache_mode=force_custom_plan"
"""PostgreSQL would keep plans that it made while the tables were small."""
_PASSWORD = re.compile(r"(://[^:/@]*):[^@]*@")
_NAME_LENGTH = 80


class NewItem(NamedTuple):
    """What one person judges at a time; see `tables.items`."""

    lang: str
    image: str
    sample_id: str
    captions: list[dict[str, str]]
    gold: Any = None
    pilot: bool = False


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class StudyDatabase:
    """A study's database.

    Parameters
    ----------
    place
        A file of SQLite, or a URL such as `postgresql://user@host/name`.
    create
        Whether the tables are made; without it they must exist.
    name
        What messages call it, if not by its place.
    """

    def __init__(self, place: str | PathLike[str], *, create: bool = False, name: str | None = None) -> None:
        self.is_file = "://" not in str(place)
        # Messages do not show a password.
        self.place = _PASSWORD.sub(r"\1:***@", name or str(place))
        if self.is_file:
            _check_file(Path(place), create)
        url = URL.create("sqlite", database=str(Path(place).absolute())) if self.is_file else _checked_url(str(place))
        options: dict[str, Any] = (
            {"connect_args": {"timeout": _WAIT}}
            if self.is_file
            else {"pool_pre_ping": True, "pool_size": 20, "connect_args": {"options": _PLANS}}
        )
        try:
            self.engine = create_engine(url, **options)
        except (ArgumentError, ImportError) as error:
            raise InputError(f"{self.place}: no database can be opened by this URL ({reason(error)}).") from None
        if self.is_file:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        # Queries in PostgreSQL see what is committed, in a transaction or not; without one they take half of the messages.
        self._reader = self.engine.execution_options(**({"reads": True} if self.is_file else {"isolation_level": "AUTOCOMMIT"}))
        # One writer at a time: SQLite lets those that wait starve.
        self._writing = threading.Lock()
        self._migrate(create)
        self.settings, self.secret = self._load()

    def _migrate(self, create: bool) -> None:
        """Make the tables, or bring those of an older version up to date."""
        config = Config()
        config.set_main_option("script_location", "caplens.human:migrations")
        config.set_main_option("path_separator", "os")
        with self._problems(), self.engine.connect() as connection:
            tables = inspect(connection)
            exists = tables.has_table("study") and tables.has_table("alembic_version")
            if not exists and not create:
                raise InputError(f"{self.place}: this is not a study. Make one with: caplens study create FILE… -o {self.place}")
            if exists and create:
                raise InputError(f"{self.place}: there is a study already. Choose another file.")
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise InputError(f"{self.place}: the study is of a newer caplens ({reason(error)}). Update caplens.") from None
            connection.commit()

    def _load(self) -> tuple[StudySettings, str]:
        with self.reading() as connection:
            row = connection.execute(select(study.c.settings, study.c.secret)).first()
        # A study that is being made has none yet.
        return (StudySettings(), "") if row is None else (StudySettings.from_dict(row.settings), row.secret)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise CaplensError(f"{self.place}: the database cannot be used ({reason(error.orig or error)}).") from None
        except (ValueError, NoResultFound) as error:
            if isinstance(error, InputError):
                raise
            raise CaplensError(f"{self.place}: the study is damaged ({reason(error)}).") from None

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A connection for queries."""
        with self._problems(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A connection whose changes are kept together, or not at all."""
        with self._problems(), self._writing if self.is_file else _nothing(), self.engine.begin() as connection:
            yield connection

    def fill(self, settings: StudySettings, paths: Mapping[str, str], asked: Sequence[NewItem]) -> str:
        """Write what the study asks; the token of its owner is returned, and kept nowhere."""
        token, self.secret, self.settings = secrets.token_urlsafe(24), secrets.token_hex(32), settings
        numbers = {name: number for number, name in enumerate(paths, 1)}
        image_rows = [{"id": numbers[name], "name": name, "path": path} for name, path in paths.items()]
        item_rows = [
            {
                **item._asdict(),
                "id": number,
                "image_id": numbers[item.image],
                "place": number,
                "load": 0,
                "is_gold": item.gold is not None,
            }
            for number, item in enumerate(asked, 1)
        ]
        for row in item_rows:
            del row["image"]
        with self.writing() as connection:
            for table, rows in ((images, image_rows), (items, item_rows)):
                for start in range(0, len(rows), _INSERTED_AT_ONCE):
                    connection.execute(table.insert(), rows[start : start + _INSERTED_AT_ONCE])
            connection.execute(
                study.insert().values(
                    id=1,
                    settings=settings.to_dict(),
                    state=PILOT if settings.pilot else OPEN,
                    owner_hash=hashed(token),
                    secret=self.secret,
                    created=time.time(),
                )
            )
            if not self.is_file:
                # Until PostgreSQL knows how many items there are, it sorts all of them for each rater.
                connection.exec_driver_sql("ANALYZE items")
        return token

    def close(self) -> None:
        """Close all connections; of a file, nothing is left beside it."""
        if self.is_file:
            with self._problems(), closing(self.engine.raw_connection()) as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
        self.engine.dispose()

    @property
    def state(self) -> str:
        with self.reading() as connection:
            return str(connection.execute(select(study.c.state)).scalar_one())

    def set_state(self, state: str, actor: str = OWNER) -> None:
        """Open, pause or close the study."""
        if state not in STATES:
            raise InputError(f"a study is {', '.join(STATES)}, not {state!r}.")
        with self.writing() as connection:
            connection.execute(study.update().values(state=state))
            self.record(connection, actor, "state", {"state": state})

    def replace_owner_token(self) -> str:
        """Give the owner a new token, and return it; the old one no longer counts."""
        token = secrets.token_urlsafe(24)
        with self.writing() as connection:
            connection.execute(study.update().values(owner_hash=hashed(token)))
            self.record(connection, OWNER, "new link", {})
        return token

    def is_owner(self, token: str) -> bool:
        with self.reading() as connection:
            kept = connection.execute(select(study.c.owner_hash)).scalar_one()
        return secrets.compare_digest(kept, hashed(token))

    def invite(self, names: Sequence[str], langs: Sequence[str]) -> dict[str, str]:
        """Name -> token of each new rater; the tokens are kept nowhere.

        Raises an error if a name is taken, or the study has no captions in a language.
        """
        if not names or any(not name.strip() or len(name) > _NAME_LENGTH or not name.isprintable() for name in names):
            raise InputError(f"raters have names of 1 to {_NAME_LENGTH} characters, without line ends and the like.")
        if OWNER in names:
            raise InputError(f"the audit calls you {OWNER!r}; give the rater another name.")
        with self.writing() as connection:
            known = set(connection.execute(select(items.c.lang).distinct()).scalars())
            if missing := sorted(set(langs) - known):
                raise InputError(f"the study has nothing in {', '.join(missing)}; it is in {', '.join(sorted(known))}.")
            taken = set(connection.execute(select(raters.c.name)).scalars())
            repeated = next((name for place, name in enumerate(names) if name in taken or name in names[:place]), None)
            if repeated is not None:
                raise InputError(f"there is a rater called {repeated!r} already; give each another name.")
            tokens = {name: secrets.token_urlsafe(24) for name in names}
            for name, token in tokens.items():
                values = {"name": name, "token_hash": hashed(token), "langs": sorted(set(langs)) or sorted(known)}
                connection.execute(raters.insert().values(**values, active=True, created=time.time()))
                self.record(connection, OWNER, "invite", {"rater": name})
        return tokens

    def record(self, connection: Any, actor: str, kind: str, detail: Mapping[str, Any]) -> None:
        """Note what happened, for the audit."""
        connection.execute(events.insert().values(time=time.time(), actor=actor, kind=kind, detail=dict(detail)))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _check_file(path: Path, create: bool) -> None:
    if create:
        return
    if not path.is_file():
        raise InputError(f"{path}: there is no such study. Make one with: caplens study create FILE… -o {path}")
    # Opening it as a study would change a file that is something else.
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CaplensError(f"{path}: the database cannot be used ({error}).") from None
    if not {"study", "alembic_version"} <= tables:
        raise InputError(f"{path}: this is not a study. Make one with: caplens study create FILE… -o {path}")


def _checked_url(url: str) -> str:
    if not url.startswith("postgresql://"):
        raise InputError(f"{url.partition(':')[0]}: a study is kept in a file of SQLite, or in PostgreSQL (postgresql://…).")
    require("psycopg", "A study in PostgreSQL", "postgresql")
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    # Transactions are begun by `_begin_immediate`, not by the driver.
    connection.isolation_level = None
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {setting}")


def _begin_immediate(connection: Any) -> None:
    """Take the right to write at once: a transaction that asks for it later can fail."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if not connection.get_execution_options().get("reads") else "BEGIN")

"""Who judges what: items go evenly to raters, nobody sees one twice but to check attention, and leases expire."""

import hashlib
import random
import time
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, case, exists, func, not_, select, update

from caplens.human.database import OPEN, PILOT, StudyDatabase
from caplens.human.settings import StudyTask
from caplens.human.tables import answers, assignments, images, items, raters, study

LEASED, DONE, EXPIRED = "leased", "done", "expired"
_REPEAT_AFTER = 15
"""Items between an item and its repetition, so that the answer is not remembered."""
_CANDIDATES = 20
"""Items with the least answers, of which one is taken whose image the rater has not seen."""


class OpenItem(NamedTuple):
    """What a rater has before them."""

    assignment: int
    step: str
    lang: str
    image: int
    captions: list[dict[str, str]]
    """In the order in which they are shown."""
    swapped: bool
    place: int
    """The place in the batch, from 1."""
    size: int
    """Of the batch."""


class Rater(NamedTuple):
    """Who answers."""

    id: int
    name: str
    langs: tuple[str, ...]


def rater_of(connection: Connection, token_hash: str) -> Rater | None:
    """The active rater with a token."""
    row = connection.execute(select(raters).where(raters.c.token_hash == token_hash, raters.c.active)).first()
    return None if row is None else Rater(row.id, row.name, tuple(row.langs))


def open_item(database: StudyDatabase, rater: Rater) -> OpenItem | None:
    """What the rater judges now: what they have open already, or else the next item; None where nothing is left for them."""
    now = time.time()
    with database.reading() as connection:
        # The usual case of a page that is loaded again needs no lock.
        current = _current(connection, database, rater, now)
    if current is not None:
        return current
    with database.writing() as connection:
        # Two tabs of one rater wait for each other, and get the same item.
        connection.execute(select(raters.c.id).where(raters.c.id == rater.id).with_for_update())
        state = connection.execute(select(study.c.state)).scalar_one()
        lease_if_free(connection, database, rater, state, now)
        return _current(connection, database, rater, now)


def lease_if_free(connection: Connection, database: StudyDatabase, rater: Rater, state: str, now: float) -> None:
    """Lease the next item to a rater who has none open, if the study is; of `write` the next batch.

    What others left open for too long is given back before.
    """
    _expire(connection, now)
    leased = func.count(case((assignments.c.state == LEASED, 1)))
    counts = select(func.count(), leased, func.coalesce(func.max(assignments.c.batch), 0))
    number, open_now, batch = connection.execute(counts.where(assignments.c.rater_id == rater.id)).one()
    if open_now or state not in (OPEN, PILOT):
        return
    settings = database.settings
    for place in range(settings.batch if settings.task is StudyTask.write else 1):
        chosen, repeat = _choose(connection, database, rater, number + place, pilot=state == PILOT)
        if chosen is None:
            break
        _lease(connection, database, rater, chosen, batch + 1, repeat=repeat, now=now)


def _current(connection: Connection, database: StudyDatabase, rater: Rater, now: float) -> OpenItem | None:
    """The first step of the rater's batch that has no answer: all ratings come before all writing."""
    if connection.execute(select(study.c.state)).scalar_one() not in (OPEN, PILOT):
        return None
    settings = database.settings
    rows = connection.execute(
        select(assignments.c.id, assignments.c.swapped, assignments.c.batch, items.c.lang, items.c.image_id, items.c.captions)
        .join(items, items.c.id == assignments.c.item_id)
        .where(assignments.c.rater_id == rater.id, assignments.c.state == LEASED, assignments.c.expires > now)
        .order_by(assignments.c.id)
    ).all()
    if not rows:
        return None
    if settings.task is not StudyTask.write:
        return _shown(rows[0], settings.task, 1, 1)
    ids = [row.id for row in rows]
    rated = set(
        connection.execute(
            select(answers.c.assignment_id).where(answers.c.assignment_id.in_(ids), answers.c.step == StudyTask.rate)
        ).scalars()
    )
    # What was written is done, and no longer among the rows.
    size = connection.execute(
        select(func.count()).where(assignments.c.rater_id == rater.id, assignments.c.batch == rows[0].batch)
    ).scalar_one()
    unrated = [row for row in rows if row.id not in rated and row.captions]
    step, left = (StudyTask.rate, unrated) if unrated else (StudyTask.write, list(rows))
    return _shown(left[0], step, size - len(left) + 1, size)


def _shown(row: Any, step: StudyTask, place: int, size: int) -> OpenItem:
    captions = list(reversed(row.captions)) if row.swapped else list(row.captions)
    shown = [] if step is StudyTask.write else captions
    return OpenItem(row.id, str(step), row.lang, row.image_id, shown, row.swapped, place, size)


def _choose(
    connection: Connection, database: StudyDatabase, rater: Rater, number: int, *, pilot: bool
) -> tuple[Row[Any] | None, bool]:
    """An item for a rater who had `number` before, and whether it is one that they have answered before."""
    settings = database.settings
    draw = _share(settings.seed, rater.id, number)
    if draw < settings.gold_share and (row := _gold(connection, rater)) is not None:
        return row, False
    if (
        settings.gold_share <= draw < settings.gold_share + settings.repeat_share
        and (row := _repeat(connection, rater)) is not None
    ):
        return row, True
    return _fresh(connection, database, rater, pilot=pilot), False


def _share(seed: int, rater: int, number: int) -> float:
    """A number from 0 to 1 that is the same whenever it is asked for."""
    digest = hashlib.sha256(f"{seed} {rater} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _unseen(rater: Rater) -> Any:
    """A rater sees an item once; one whose lease expired may come again."""
    seen = exists().where(assignments.c.item_id == items.c.id, assignments.c.rater_id == rater.id, assignments.c.state != EXPIRED)
    return and_(items.c.lang.in_(rater.langs), not_(seen))


def _gold(connection: Connection, rater: Rater) -> Row[Any] | None:
    return connection.execute(select(items).where(_unseen(rater), items.c.is_gold).order_by(items.c.place).limit(1)).first()


def _repeat(connection: Connection, rater: Rater) -> Row[Any] | None:
    """The oldest item of the rater that they have not seen again, if it is long enough ago."""
    own = and_(assignments.c.rater_id == rater.id, assignments.c.state == DONE)
    again = select(assignments.c.item_id).where(assignments.c.rater_id == rater.id, assignments.c.repeat)
    last = select(assignments.c.id).where(own).order_by(assignments.c.id.desc()).limit(_REPEAT_AFTER)
    return connection.execute(
        select(items)
        .join(assignments, assignments.c.item_id == items.c.id)
        .where(own, not_(assignments.c.repeat), assignments.c.id.not_in(last), items.c.id.not_in(again))
        .order_by(assignments.c.id)
        .limit(1)
    ).first()


def _fresh(connection: Connection, database: StudyDatabase, rater: Rater, *, pilot: bool) -> Row[Any] | None:
    """One of the items with the fewest answers; if possible about an image that the rater has not seen with another caption."""
    wanted = and_(_unseen(rater), not_(items.c.is_gold), items.c.load < database.settings.replication)
    if pilot:
        wanted = and_(wanted, items.c.pilot)
    rows = connection.execute(
        select(items).where(wanted).order_by(items.c.load, items.c.place).limit(_CANDIDATES).with_for_update(skip_locked=True)
    ).all()
    if not rows:
        return None
    seen = set(
        connection.execute(
            select(items.c.image_id)
            .join(assignments, assignments.c.item_id == items.c.id)
            .where(assignments.c.rater_id == rater.id, items.c.image_id.in_([row.image_id for row in rows]))
        ).scalars()
    )
    least = [row for row in rows if row.load == rows[0].load]
    unseen = [row for row in least if row.image_id not in seen] or [row for row in rows if row.image_id not in seen]
    return (unseen or least)[0]


def _lease(
    connection: Connection, database: StudyDatabase, rater: Rater, item: Row[Any], batch: int, *, repeat: bool, now: float
) -> None:
    values = {
        "state": LEASED,
        "batch": batch,
        "opened": now,
        "expires": now + 60 * database.settings.lease_minutes,
    }
    key = {"item_id": item.id, "rater_id": rater.id, "repeat": repeat}
    # An item that comes again keeps its sides: a page that was opened before may still send its answer.
    old = update(assignments).where(*(assignments.c[name] == value for name, value in key.items())).values(**values)
    if not connection.execute(old).rowcount:
        swapped = len(item.captions) > 1 and random.SystemRandom().random() < 0.5
        connection.execute(assignments.insert().values(**key, **values, swapped=swapped))
    if not item.is_gold and not repeat:
        connection.execute(update(items).where(items.c.id == item.id).values(load=items.c.load + 1))


def _expire(connection: Connection, now: float) -> None:
    """Give back what was opened and not answered in time."""
    rows = connection.execute(
        select(assignments.c.id, assignments.c.item_id, assignments.c.repeat, items.c.is_gold)
        .join(items, items.c.id == assignments.c.item_id)
        .where(assignments.c.state == LEASED, assignments.c.expires <= now)
    ).all()
    for row in rows:
        change = update(assignments).where(assignments.c.id == row.id, assignments.c.state == LEASED).values(state=EXPIRED)
        if connection.execute(change).rowcount and not row.is_gold and not row.repeat:
            connection.execute(update(items).where(items.c.id == row.item_id).values(load=items.c.load - 1))


def image_path(database: StudyDatabase, rater: Rater, image: int) -> str | None:
    """The file of an image that the rater has open, or had; None for others."""
    with database.reading() as connection:
        path: str | None = connection.execute(
            select(images.c.path)
            .join(items, items.c.image_id == images.c.id)
            .join(assignments, assignments.c.item_id == items.c.id)
            .where(images.c.id == image, assignments.c.rater_id == rater.id)
            .limit(1)
        ).scalar()
    return path

"""What people answered, out of the database: ratings, preferences between two captions, captions that were written, events."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import select

from caplens.human.analysis import CaptionRating, Preference
from caplens.human.database import StudyDatabase
from caplens.human.settings import QUALITY, StudyTask
from caplens.human.tables import answers, assignments, events, images, items, raters
from caplens.results.base import ResultRow


class Answer(NamedTuple):
    """One answer, with what it is about."""

    assignment: int
    step: str
    value: dict[str, Any]
    seconds: float | None
    time: float
    rater: str
    repeat: bool
    swapped: bool
    item: int
    lang: str
    sample_id: str
    captions: list[dict[str, str]]
    gold: Any
    image: str


class Judgement(NamedTuple):
    """An answer without what was shown, of which there are many."""

    value: dict[str, Any]
    seconds: float | None
    rater: str
    repeat: bool
    item: int
    lang: str
    gold: Any


def judgements_of(database: StudyDatabase) -> Iterator[Judgement]:
    """All answers of the study's own task, in the order of assignments."""
    columns = (answers.c.value, answers.c.seconds, raters.c.name, assignments.c.repeat, items.c.id, items.c.lang, items.c.gold)
    query = (
        select(*columns)
        .select_from(answers)
        .join(assignments, assignments.c.id == answers.c.assignment_id)
        .join(raters, raters.c.id == assignments.c.rater_id)
        .join(items, items.c.id == assignments.c.item_id)
        .where(answers.c.step == str(database.settings.task))
        .order_by(answers.c.assignment_id)
    )
    with database.reading() as connection:
        yield from map(Judgement._make, connection.execute(query))


def answers_of(database: StudyDatabase, step: str | None = None) -> Iterator[Answer]:
    """All answers of the study's own task, or of another step, in the order of assignments."""
    query = (
        select(
            answers.c.assignment_id, answers.c.step, answers.c.value, answers.c.seconds, answers.c.time, raters.c.name,
            assignments.c.repeat, assignments.c.swapped, items.c.id, items.c.lang, items.c.sample_id, items.c.captions,
            items.c.gold, images.c.name,
        )
        .join(assignments, assignments.c.id == answers.c.assignment_id)
        .join(raters, raters.c.id == assignments.c.rater_id)
        .join(items, items.c.id == assignments.c.item_id)
        .join(images, images.c.id == items.c.image_id)
        .where(answers.c.step == (step or str(database.settings.task)))
        .order_by(answers.c.assignment_id)
    )  # fmt: skip
    with database.reading() as connection:
        for row in connection.execute(query):
            yield Answer(*row)


def caption_ratings(database: StudyDatabase, criterion: str | None = None) -> list[CaptionRating]:
    """The ratings by one criterion, the first by default; without those of gold items and of repetitions."""
    chosen = criterion or database.settings.criteria[0]
    return [
        CaptionRating(
            answer.image, answer.captions[0]["id"], answer.lang, answer.captions[0]["system"], answer.rater,
            answer.value["ratings"].get(chosen),
        )
        for answer in answers_of(database)
        if not answer.repeat and answer.gold is None
    ]  # fmt: skip


def preferences(database: StudyDatabase) -> list[Preference]:
    """The judgements of two captions; without those of gold items and of repetitions."""
    return [
        Preference(
            answer.image, answer.lang, answer.captions[0]["system"], answer.captions[1]["system"], answer.rater,
            float(answer.value["preference"]), answer.sample_id,
        )
        for answer in answers_of(database)
        if not answer.repeat and answer.gold is None
    ]  # fmt: skip


def exported_rows(database: StudyDatabase) -> Iterator[ResultRow]:
    """Answers as rows that other commands read.

    Of `rate` a caption with its ratings, of `sidebyside` a judgement, of `write` a caption.
    """
    if database.settings.task is StudyTask.rate:
        yield from _rated_captions(database)
        return
    for answer in answers_of(database):
        about = {"id": answer.sample_id, "image": answer.image, "lang": answer.lang}
        by = {"rater": answer.rater, "time": _iso(answer.time), "seconds": answer.seconds}
        flags = {"repeat": answer.repeat, "gold": answer.gold}
        if database.settings.task is StudyTask.write:
            yield {**about, "caption": answer.value["caption"], "system": "people", **by}
            continue
        first, second = answer.captions
        yield {
            **about, "system": first["system"], "baseline": second["system"], "caption": first["caption"],
            "baseline_caption": second["caption"], "preference": answer.value["preference"],
            "left": second["system"] if answer.swapped else first["system"], "reason": answer.value.get("reason"), **by, **flags,
        }  # fmt: skip


def _rated_captions(database: StudyDatabase) -> Iterator[ResultRow]:
    with_system = False
    by_item: dict[int, tuple[Answer, list[ResultRow]]] = {}
    single = database.settings.criteria == (QUALITY,)
    for answer in answers_of(database):
        if answer.repeat:
            continue
        with_system |= bool(answer.captions[0]["system"])
        _, ratings = by_item.setdefault(answer.item, (answer, []))
        for criterion, value in answer.value["ratings"].items():
            if value is not None:
                named = {} if single else {"criterion": criterion}
                ratings.append({"value": value, "rater": answer.rater, **named, "time": _iso(answer.time)})
    for answer, ratings in by_item.values():
        caption = answer.captions[0]
        row: ResultRow = {"id": caption["id"], "image": answer.image, "caption": caption["caption"], "lang": answer.lang}
        yield row | ({"system": caption["system"] or None} if with_system else {}) | {"ratings": ratings}


def event_rows(database: StudyDatabase) -> Iterator[ResultRow]:
    """All that happened, for the audit."""
    with database.reading() as connection:
        rows = connection.execute(select(events).order_by(events.c.id)).all()
    details = dict.fromkeys(name for row in rows for name in row.detail)
    for row in rows:
        yield {"time": _iso(row.time), "actor": row.actor, "kind": row.kind, **{name: row.detail.get(name) for name in details}}


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")

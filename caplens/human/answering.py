"""What raters answer: checked, kept once however often it is sent, changed, and taken back."""

import re
import time
import unicodedata
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, select, update

from caplens.errors import InputError
from caplens.human.assignment import DONE, EXPIRED, LEASED, Rater, lease_if_free
from caplens.human.database import OPEN, PAUSED, PILOT, StudyDatabase
from caplens.human.settings import LARGEST_CHOICE, StudySettings, StudyTask
from caplens.human.tables import answers, assignments, items, study
from caplens.text.unicode import is_spaceless
from caplens.text.words import split

NO_INFORMATION = "?"
"""What the form sends where there is not enough information."""
_LONGEST_REASON = 2000
_LONGEST_TEXT = 4000
_MOST_SECONDS = 24 * 3600.0
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class WrongAnswerError(InputError):
    """What was sent is no answer; `message` names a sentence of the pages' catalogue, `values` are its parts."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(f"this answer cannot be kept ({message}).")
        self.message, self.values = message, values


def read_answer(settings: StudySettings, step: str, lang: str, form: Mapping[str, str], *, swapped: bool) -> dict[str, Any]:
    """The value of an answer from the fields of its form; an error if a field is missing or not one of the choices."""
    value: dict[str, Any]
    if step == StudyTask.sidebyside:
        value = {"preference": _preference(form.get("choice", ""), swapped=swapped)}
    elif step == StudyTask.write:
        return {"caption": _written(settings, lang, form.get("caption", ""))}
    else:
        value = {
            "ratings": {name: _rating(settings, form.get(f"choice-{place}", "")) for place, name in enumerate(settings.criteria)}
        }
    reason = _clean(form.get("reason", ""))
    if len(reason) > _LONGEST_REASON:
        raise WrongAnswerError("too long", most=_LONGEST_REASON)
    return value | ({"reason": reason} if reason and settings.reasons else {})


def _preference(choice: str, *, swapped: bool) -> int:
    """From -3, the left one is much better, to 3, the right one is; turned so that positive is for the first system."""
    if choice not in {str(number) for number in range(-LARGEST_CHOICE, LARGEST_CHOICE + 1)}:
        raise WrongAnswerError("choose one")
    return int(choice) if swapped else -int(choice)


def _rating(settings: StudySettings, choice: str) -> float | None:
    if choice == NO_INFORMATION and settings.no_information:
        return None
    for label in settings.scale:
        if choice == f"{label.value:g}":
            return label.value
    raise WrongAnswerError("choose one")


def _written(settings: StudySettings, lang: str, text: str) -> str:
    caption = " ".join(_clean(text).split())
    if not any(map(str.isalpha, caption)):
        raise WrongAnswerError("write a caption")
    if len(caption) > _LONGEST_TEXT:
        raise WrongAnswerError("too long", most=_LONGEST_TEXT)
    spaceless = sum(map(is_spaceless, caption)) > len(caption) / 2
    length = sum(map(str.isalnum, caption)) if spaceless else len(split(caption, lang))
    if length < settings.shortest:
        raise WrongAnswerError("too short", least=settings.shortest)
    if length > settings.longest:
        raise WrongAnswerError("too long", most=settings.longest)
    return caption


def _clean(text: str) -> str:
    """Without characters that nobody can see or that turn the direction of what follows."""
    return unicodedata.normalize("NFC", _CONTROL.sub("", text)).strip()


def save_answer(
    database: StudyDatabase, rater: Rater, assignment: int, step: str, form: Mapping[str, str], seconds: float | None
) -> bool:
    """Keep an answer. Sending it twice changes nothing; sending another one later replaces it, which is noted.

    Returns whether anything changed. Raises an error if the assignment is not the rater's, or what was sent is no answer.
    """
    settings, now = database.settings, time.time()
    with database.writing() as connection:
        row = _owned(connection, rater, assignment, step)
        # What was open when the study was paused can still be sent.
        _check_state(row.study_state, (OPEN, PILOT, PAUSED))
        if step not in _steps(settings, row):
            raise WrongAnswerError("not yours")
        value, old = read_answer(settings, step, row.lang, form, swapped=row.swapped), row.answer
        if old == value:
            return False
        if old is None:
            spent = None if seconds is None or not 0 <= seconds <= _MOST_SECONDS else seconds
            new = {"assignment_id": assignment, "step": step, "value": value, "seconds": spent, "time": now}
            connection.execute(answers.insert().values(**new))
            if step == settings.task:
                _finish(connection, row)
                # In one transaction: the page that follows has only to read.
                lease_if_free(connection, database, rater, row.study_state, now)
        else:
            key = (answers.c.assignment_id == assignment, answers.c.step == step)
            connection.execute(update(answers).where(*key).values(value=value, time=now))
        detail = {"assignment": assignment, "step": step, **({} if old is None else {"before": old})}
        database.record(connection, rater.name, "answer" if old is None else "change", detail)
    return True


def _check_state(state: str, allowed: tuple[str, ...]) -> None:
    if state not in allowed:
        raise WrongAnswerError(state)


def _owned(connection: Connection, rater: Rater, assignment: int, step: str) -> Row[Any]:
    """The rater's assignment with its item, what they answered in this step, and the state of the study."""
    state = select(study.c.state).scalar_subquery().label("study_state")
    own_answer = and_(answers.c.assignment_id == assignments.c.id, answers.c.step == step)
    row = connection.execute(
        select(assignments, items.c.lang, items.c.captions, items.c.is_gold, answers.c.value.label("answer"), state)
        .join(items, items.c.id == assignments.c.item_id)
        .outerjoin(answers, own_answer)
        .where(assignments.c.id == assignment, assignments.c.rater_id == rater.id)
        .with_for_update(of=assignments)
    ).first()
    if row is None:
        raise WrongAnswerError("not yours")
    return row


def _steps(settings: StudySettings, row: Row[Any]) -> list[str]:
    if settings.task is StudyTask.write:
        return [StudyTask.rate, StudyTask.write] if row.captions else [StudyTask.write]
    return [settings.task]


def _finish(connection: Connection, row: Row[Any]) -> None:
    connection.execute(update(assignments).where(assignments.c.id == row.id).values(state=DONE))
    if row.state == EXPIRED and not row.is_gold and not row.repeat:
        # It came after its time, when the item had been given back.
        connection.execute(update(items).where(items.c.id == row.item_id).values(load=items.c.load + 1))


def take_back(database: StudyDatabase, rater: Rater) -> bool:
    """Undo the rater's last answer, so that its item is before them again; False where there is none."""
    now = time.time()
    with database.writing() as connection:
        _check_state(connection.execute(select(study.c.state)).scalar_one(), (OPEN, PILOT))
        last = connection.execute(
            select(answers.c.assignment_id, answers.c.step, answers.c.value, assignments.c.state)
            .join(assignments, assignments.c.id == answers.c.assignment_id)
            .where(assignments.c.rater_id == rater.id)
            .order_by(answers.c.time.desc(), answers.c.assignment_id.desc())
            .limit(1)
        ).first()
        if last is None or last.state == EXPIRED:
            return False
        own = answers.c.assignment_id == last.assignment_id
        if last.step == StudyTask.rate and database.settings.task is StudyTask.write:
            # What was written after the rating is asked for again too: the assignment is open from its first step on.
            later = connection.execute(select(answers.c.step, answers.c.value).where(own, answers.c.step != last.step)).all()
            for step, value in later:
                detail = {"assignment": last.assignment_id, "step": step, "before": value}
                database.record(connection, rater.name, "undo", detail)
            connection.execute(delete(answers).where(own))
        connection.execute(delete(answers).where(own, answers.c.step == last.step))
        until = now + 60 * database.settings.lease_minutes
        # Whatever else was open comes after it: the lowest assignment is shown first.
        connection.execute(update(assignments).where(assignments.c.id == last.assignment_id).values(state=LEASED, expires=until))
        detail = {"assignment": last.assignment_id, "step": last.step, "before": last.value}
        database.record(connection, rater.name, "undo", detail)
    return True

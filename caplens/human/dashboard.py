"""What the owner of a study sees: progress, agreement, raters who are slow or careless, and what it costs."""

import io
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple

from sqlalchemy import delete, func, not_, select, update

from caplens.errors import InputError
from caplens.human.analysis import agreement_of
from caplens.human.assignment import DONE
from caplens.human.database import OWNER, StudyDatabase
from caplens.human.export import Judgement, event_rows, exported_rows, judgements_of
from caplens.human.tables import answers, assignments, events, items, raters
from caplens.results.base import ResultRow, write_delimited, write_jsonl
from caplens.results.table import Cell, Table

_CARELESS_GOLD, _CARELESS_REPEATS = 0.6, 0.5
_LEAST_CHECKS = 5
"""Gold items or repetitions before somebody is called careless."""
_FAST, _SLOW = 0.33, 3.0
"""Times the median of all raters."""
_LEAST_ANSWERS = 10
DOWNLOADS = {"answers.jsonl": "answers (JSONL)", "answers.csv": "answers (CSV)", "events.jsonl": "all that happened (JSONL)"}


class Overview(NamedTuple):
    """The study at a glance."""

    task: str
    state: str
    answers: int
    wanted: int
    cost: str
    tables: list[Table]


def overview(database: StudyDatabase) -> Overview:
    """How far the study is."""
    recorded = list(judgements_of(database))
    tables = [_by_language(database, recorded), _by_rater(database, recorded)]
    wanted, settings = _wanted(database), database.settings
    counted = sum(not answer.repeat and answer.gold is None for answer in recorded)
    spent, all_of_it = len(recorded) * settings.cost_per_answer, wanted * settings.cost_per_answer
    cost = f"{spent:,.2f} of about {all_of_it:,.2f} {settings.currency}" if settings.cost_per_answer else ""
    return Overview(str(settings.task), database.state, counted, wanted, cost, tables)


def _wanted(database: StudyDatabase) -> int:
    with database.reading() as connection:
        count = connection.execute(select(func.count()).select_from(items).where(not_(items.c.is_gold))).scalar_one()
    return int(count) * database.settings.replication


def _by_language(database: StudyDatabase, recorded: Iterable[Judgement]) -> Table:
    with database.reading() as connection:
        counts = dict(
            connection.execute(select(items.c.lang, func.count()).where(not_(items.c.is_gold)).group_by(items.c.lang)).all()
        )
    by_language: dict[str, list[Judgement]] = {lang: [] for lang in sorted(counts)}
    for answer in recorded:
        if not answer.repeat and answer.gold is None:
            by_language[answer.lang].append(answer)
    rows: list[list[Cell]] = []
    for lang, of_language in by_language.items():
        per_item: dict[int, int] = {}
        for answer in of_language:
            per_item[answer.item] = per_item.get(answer.item, 0) + 1
        complete = sum(count >= database.settings.replication for count in per_item.values())
        agreement = agreement_of((str(answer.item), answer.rater, judged_value(answer)) for answer in of_language)
        rows.append([lang, counts[lang], complete, len(of_language), *agreement])
    columns = ["language", "items", "complete", "answers", "alpha", "kappa"]
    return Table(columns, rows, "By language", ["Alpha is Krippendorff's, for ordered answers; kappa is Fleiss'."])


def judged_value(answer: Judgement) -> float | None:
    """What agreement is measured on: the preference, or the mean of the criteria; None of what was written."""
    if "preference" in answer.value:
        return float(answer.value["preference"])
    values = [value for value in answer.value.get("ratings", {}).values() if value is not None]
    return sum(values) / len(values) if values else None


def _by_rater(database: StudyDatabase, recorded: Iterable[Judgement]) -> Table:
    with database.reading() as connection:
        known = connection.execute(select(raters.c.name, raters.c.active, raters.c.langs).order_by(raters.c.id)).all()
    by_rater: dict[str, list[Judgement]] = {row.name: [] for row in known}
    for answer in recorded:
        by_rater[answer.rater].append(answer)
    times = {
        name: median(seconds)
        for name, of_rater in by_rater.items()
        if (seconds := [answer.seconds for answer in of_rater if answer.seconds is not None])
    }
    usual = median(times.values()) if times else 0.0
    rows: list[list[Cell]] = []
    for row in known:
        of_rater = by_rater[row.name]
        gold, repeats = _gold_share(of_rater), _repeat_share(of_rater)
        remarks = _remarks(len(of_rater), times.get(row.name), usual, gold, repeats)
        rows.append([
            row.name, ", ".join(row.langs), len(of_rater), times.get(row.name), _shown_share(gold), _shown_share(repeats),
            ("" if row.active else "deleted") or remarks,
        ])  # fmt: skip
    columns = ["rater", "languages", "answers", "median seconds", "gold right", "repeats alike", "remarks"]
    return Table(columns, rows, "By rater", digits=1)


class _Share(NamedTuple):
    right: int
    checks: int


def _gold_share(recorded: Iterable[Judgement]) -> _Share:
    checks = [is_right(answer) for answer in recorded if answer.gold is not None and not answer.repeat]
    return _Share(sum(checks), len(checks))


def is_right(answer: Judgement) -> bool:
    """Whether the answer to a gold item is right: one of those named, or the side that is better."""
    if "preference" in answer.value:
        preference = answer.value["preference"]
        return bool((preference > 0) - (preference < 0) == answer.gold)
    return all(value in answer.gold for value in answer.value.get("ratings", {}).values())


def _repeat_share(recorded: Iterable[Judgement]) -> _Share:
    """How often a repetition was answered alike, within a point of the scale."""
    listed = list(recorded)
    first = {answer.item: judged_value(answer) for answer in listed if not answer.repeat}
    pairs = [(judged_value(answer), first.get(answer.item)) for answer in listed if answer.repeat]
    alike = [one == other if one is None or other is None else abs(one - other) <= 1 for one, other in pairs]
    return _Share(sum(alike), len(alike))


def _shown_share(share: _Share) -> str:
    return f"{share.right} of {share.checks}" if share.checks else "–"


def _remarks(count: int, seconds: float | None, usual: float, gold: _Share, repeats: _Share) -> str:
    remarks = []
    for share, least in ((gold, _CARELESS_GOLD), (repeats, _CARELESS_REPEATS)):
        if share.checks >= _LEAST_CHECKS and share.right < least * share.checks and "careless?" not in remarks:
            remarks.append("careless?")
    if seconds is not None and count >= _LEAST_ANSWERS and usual:
        remarks += ["very fast"] * (seconds < _FAST * usual) + ["slow"] * (seconds > _SLOW * usual)
    return ", ".join(remarks)


def answered_by(database: StudyDatabase, rater: int) -> int:
    """How many answers a rater gave."""
    with database.reading() as connection:
        query = select(func.count()).select_from(answers).join(assignments, assignments.c.id == answers.c.assignment_id)
        return int(connection.execute(query.where(assignments.c.rater_id == rater)).scalar_one())


def language_of(database: StudyDatabase, assignment: int) -> str | None:
    """The language of what was assigned."""
    with database.reading() as connection:
        query = select(items.c.lang).join(assignments, assignments.c.item_id == items.c.id)
        lang: str | None = connection.execute(query.where(assignments.c.id == assignment)).scalar()
    return lang


def forget_rater(database: StudyDatabase, name: str) -> None:
    """Delete all that a rater did and who they are; their link no longer counts, and others get their items."""
    with database.writing() as connection:
        row = connection.execute(select(raters.c.id).where(raters.c.name == name)).first()
        if row is None:
            raise InputError(f"there is no rater called {name!r}.")
        assigned = select(assignments.c.id).where(assignments.c.rater_id == row.id)
        counted = connection.execute(
            select(assignments.c.item_id)
            .join(items, items.c.id == assignments.c.item_id)
            .where(
                assignments.c.rater_id == row.id, assignments.c.state.in_((DONE, "leased")), not_(assignments.c.repeat),
                not_(items.c.is_gold),
            )
        ).scalars().all()  # fmt: skip
        for item in counted:
            connection.execute(update(items).where(items.c.id == item).values(load=items.c.load - 1))
        connection.execute(delete(answers).where(answers.c.assignment_id.in_(assigned)))
        connection.execute(delete(assignments).where(assignments.c.rater_id == row.id))
        connection.execute(delete(events).where(events.c.actor == name))
        connection.execute(delete(raters).where(raters.c.id == row.id))
        # An invitation names its rater too.
        for event in connection.execute(select(events.c.id, events.c.detail)).all():
            if event.detail.get("rater") == name:
                connection.execute(delete(events).where(events.c.id == event.id))
        database.record(connection, OWNER, "forget", {"answers": len(counted)})


def download(database: StudyDatabase, name: str) -> str:
    """The text of one of `DOWNLOADS`."""
    rows: Iterable[ResultRow] = event_rows(database) if name.startswith("events") else exported_rows(database)
    write: Callable[[Iterable[ResultRow], io.StringIO], None] = write_delimited if name.endswith(".csv") else write_jsonl
    out = io.StringIO()
    write(rows, out)
    return out.getvalue()

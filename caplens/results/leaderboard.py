"""Metrics by benchmarks: what was computed beside what papers report, each value with its source."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, json_object, numbers_of
from caplens.results.metric_names import printed_metric
from caplens.results.table import LEVEL, Cell, Table

_SIGNIFICANT, _VERY_SIGNIFICANT = 0.05, 0.01
_MODEL = re.compile(r"\|model:(?P<name>.*?)@[0-9a-f]{8}(?:\||$)")
HUMANS = "people (each rater against the others)"
"""The row of the human ceiling."""


class LeaderboardColumn(NamedTuple):
    """What metrics are compared by: the main measure of a benchmark, protocol and language."""

    benchmark: str
    protocol: str
    lang: str
    measure: str

    @property
    def title(self) -> str:
        return self.benchmark if self.lang == "en" else f"{self.benchmark} ({self.lang})"


class LeaderboardEntry(NamedTuple):
    """The value of one metric in one column, times 100.

    `source` is the paper and table of a published value, or who contributed a computed one; it is empty for those of this run.
    `p` is of the difference to the metric that the leaderboard compares with.
    """

    benchmark: str
    protocol: str
    lang: str
    measure: str
    metric: str
    value: float
    published: bool
    source: str = ""
    model: str = ""
    signature: str = ""
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")

    @property
    def column(self) -> LeaderboardColumn:
        return LeaderboardColumn(self.benchmark, self.protocol, self.lang, self.measure)

    @property
    def row(self) -> str:
        """The name of the metric, with the model of a published value and with who computed it."""
        # Ours with one model and theirs with another are not one row.
        own = None if self.published or "[" in self.metric else _MODEL.search(self.signature)
        model = own["name"] if own is not None else self.model
        metric = f"{self.metric}[{model}]" if model else self.metric
        contributor = f", {self.source}" if self.source and not self.published else ""
        return printed_metric(metric).name + contributor


@dataclass
class Leaderboard(Result):
    """Metrics by benchmarks.

    Attributes
    ----------
    entries
        Every value.
    ceilings
        Benchmark, protocol and language -> how far each rater agrees with the mean of the others, by the main measure.
    absent
        Benchmarks that were not run -> why, and how to get their data.
    against
        The metric that others are tested against, if any.
    """

    kind = "leaderboard"

    entries: list[LeaderboardEntry]
    ceilings: dict[LeaderboardColumn, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    against: str | None = None
    warnings: list[str] = field(default_factory=list)
    """Of the runs, by benchmark."""
    test_warnings: list[str] = field(default_factory=list)
    """Where no test could find a difference."""

    @property
    def columns(self) -> list[LeaderboardColumn]:
        """Those with computed values first."""
        computed = [entry.column for entry in self.entries if not entry.published]
        return list(dict.fromkeys([*computed, *(entry.column for entry in self.entries)]))

    def cells(self) -> dict[str, dict[LeaderboardColumn, list[LeaderboardEntry]]]:
        """Row -> column -> its values, computed ones first; rows of computed values first, each part by its first column."""
        rows: dict[str, dict[LeaderboardColumn, list[LeaderboardEntry]]] = {}
        for entry in sorted(self.entries, key=lambda entry: entry.published):
            rows.setdefault(entry.row, {}).setdefault(entry.column, []).append(entry)
        places = {column: place for place, column in enumerate(self.columns)}
        return dict(sorted(rows.items(), key=lambda row: _order(row[1], places)))

    def tables(self) -> list[Table]:
        """One table; benchmarks for which nothing was computed, and published values of other models, are left to the page."""
        computed = {entry.column for entry in self.entries if not entry.published}
        shown = [column for column in self.columns if not computed or column in computed]
        rows = [row for row in self._rows(shown) if any(row[1:])]
        measures = dict.fromkeys(f"{column.title}: {column.measure}" for column in shown)
        notes = [f"Times 100. {'; '.join(measures)}. In brackets: published."]
        if self.against is not None:
            notes.append(
                f"† p < {_SIGNIFICANT}, ‡ p < {_VERY_SIGNIFICANT} against {printed_metric(self.against).name}: paired bootstrap"
                " over images, corrected by Holm for the metrics of a column."
            )
        notes += [*self.test_warnings, "Rows are in the order of the first column."]
        notes += [f"Not run: {', '.join(self.absent)}. The page says how to get their data."] if self.absent else []
        return [Table(["metric", *(column.title for column in shown)], rows, title="Leaderboard", notes=notes)]

    def _rows(self, columns: Sequence[LeaderboardColumn]) -> Iterator[list[Cell]]:
        yield [HUMANS, *(_number(self.ceilings.get(column)) for column in columns)]
        for name, by_column in self.cells().items():
            if not any(entry.model for entries in by_column.values() for entry in entries):
                yield [name, *(" ".join(map(self.shown, by_column.get(column, ()))) for column in columns)]

    def shown(self, entry: LeaderboardEntry) -> str:
        """A value with its mark: brackets for a published one, a dagger for one that differs from the metric compared with."""
        if entry.published:
            return f"({entry.value:.1f})"
        return f"{entry.value:.1f}{'‡' if entry.p < _VERY_SIGNIFICANT else '†' if entry.p < _SIGNIFICANT else ''}"

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each value."""
        return (entry._asdict() for entry in self.entries)

    def content(self) -> dict[str, Any]:
        return {
            "entries": [json_object(entry) for entry in self.entries],
            "ceilings": [{**column._asdict(), "value": value} for column, value in self.ceilings.items()],
            "absent": self.absent,
            "against": self.against,
            "level": LEVEL,
            "warnings": self.warnings,
            "test_warnings": self.test_warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        ceilings = {
            LeaderboardColumn(*(str(row[name]) for name in LeaderboardColumn._fields)): float(row["value"])
            for row in content["ceilings"]
        }
        entries = [_entry(numbers_of(entry)) for entry in content["entries"]]
        against = None if content["against"] is None else _text(content["against"])
        notes = [[_text(line) for line in _list(content.get(name, []))] for name in ("warnings", "test_warnings")]
        absent = {_text(name): _text(why) for name, why in dict(content["absent"]).items()}
        return cls(entries, ceilings, absent, against, *notes)


_TEXTS = ("benchmark", "protocol", "lang", "measure", "metric", "source", "model", "signature")


def _entry(values: dict[str, Any]) -> LeaderboardEntry:
    """An entry of a file from elsewhere: every field has its own type."""
    for name, value in values.items():
        if name in _TEXTS:
            _text(value)
        elif name == "published":
            if not isinstance(value, bool):
                raise TypeError(f"published is true or false, not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is a number, not {value!r}")
        elif math.isinf(value):
            raise TypeError(f"{name} is a finite number, not {value!r}")
    return LeaderboardEntry(**values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is expected, not {value!r}")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"a list is expected, not {value!r}")
    return value


def _number(value: float | None) -> Cell:
    return "" if value is None or math.isnan(value) else f"{value:.1f}"


def _order(
    by_column: dict[LeaderboardColumn, list[LeaderboardEntry]], places: dict[LeaderboardColumn, int]
) -> tuple[bool, int, float]:
    published = all(entry.published for entries in by_column.values() for entry in entries)
    counted = {column: entries[0] for column, entries in by_column.items() if published or not entries[0].published}
    first = min(counted, key=lambda column: places[column])
    value = counted[first].value
    return published, places[first], math.inf if math.isnan(value) else -value

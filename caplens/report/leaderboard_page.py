"""The page of a leaderboard: one self-contained HTML file, on which every published value names its source."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from caplens.data.replacing import replacing
from caplens.report.plots import printable
from caplens.report.templates import asset, render_template
from caplens.results.leaderboard import HUMANS, Leaderboard, LeaderboardColumn, LeaderboardEntry
from caplens.results.metric_names import printed_metric


class ShownValue(NamedTuple):
    """A value of a cell."""

    text: str
    classes: str
    about: str
    """What is shown when one points at it."""
    source: int | None
    """Its number in the list of sources, from 1."""
    interval: str


class ShownCell(NamedTuple):
    """The values of a metric in a column."""

    values: list[ShownValue]
    sort: str


class ShownRow(NamedTuple):
    """A metric."""

    name: str
    kind: str
    cells: list[ShownCell]


def write_leaderboard(
    board: Leaderboard, target: Path, title: str = "Metrics of captions, and how they agree with people"
) -> None:
    """Write the page to `target`."""
    columns = board.columns
    sources = list(dict.fromkeys(entry.source for entry in board.entries if entry.published))
    numbers = {source: number for number, source in enumerate(sources, 1)}
    best = {
        # One value alone is not the best of anything.
        column: max(values) if len(values := _computed(board, column)) > 1 else math.nan
        for column in columns
    }
    rows = [
        ShownRow(
            name,
            "published" if all(e.published for entries in by_column.values() for e in entries) else "computed",
            [_cell(board, by_column.get(column, []), best[column], numbers) for column in columns],
        )
        for name, by_column in board.cells().items()
    ]
    html = render_template(
        "leaderboard.html",
        "leaderboard.js",
        title=title,
        columns=columns,
        rows=rows,
        ceilings=_whole(board.ceilings),
        humans=HUMANS,
        sources=sources,
        signatures=list(dict.fromkeys(_signature(entry) for entry in board.entries if entry.signature)),
        absent=board.absent,
        computed={entry.column for entry in board.entries if not entry.published},
        notes=[*board.test_warnings, *board.warnings],
        legend=_legend(board),
        style=Markup(asset("report.css")),
    )
    with replacing(target) as temporary:
        temporary.write_text(printable(html), encoding="utf-8", newline="\n")


def _computed(board: Leaderboard, column: LeaderboardColumn) -> list[float]:
    return [entry.value for entry in board.entries if entry.column == column and not entry.published]


def _whole(ceilings: dict[LeaderboardColumn, float]) -> dict[LeaderboardColumn, float]:
    return {column: value for column, value in ceilings.items() if not math.isnan(value)}


def _legend(board: Leaderboard) -> str:
    if board.against is None:
        return ""
    name = printed_metric(board.against).name
    test = "paired bootstrap over images, corrected by Holm for the metrics of a column"
    return f"† and ‡: differs from {name} with p < 0.05 and p < 0.01 ({test})."


def _signature(entry: LeaderboardEntry) -> str:
    return f"{entry.source}: {entry.signature}" if entry.source else entry.signature


def _cell(board: Leaderboard, entries: Sequence[LeaderboardEntry], best: float, numbers: dict[str, int]) -> ShownCell:
    values = [_value(board, entry, best, numbers) for entry in entries]
    first = next((entry.value for entry in entries if not math.isnan(entry.value)), None)
    return ShownCell(values, "" if first is None else f"{first:.4f}")


def _value(board: Leaderboard, entry: LeaderboardEntry, best: float, numbers: dict[str, int]) -> ShownValue:
    text = board.shown(entry)
    if entry.published:
        return ShownValue(text, "published", entry.source, numbers[entry.source], "")
    classes = "computed best" if round(entry.value, 1) == round(best, 1) else "computed"
    interval = "" if math.isnan(entry.low) else f"{entry.low:.1f} to {entry.high:.1f}"
    return ShownValue(text, classes, entry.signature, None, interval)

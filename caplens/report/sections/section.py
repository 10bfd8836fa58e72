"""What the page shows of a result: tables, plots and captions; and the parts that several kinds of results share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import language_names
from caplens.perturbation.words import split
from caplens.report import plots
from caplens.report.cases import Case
from caplens.results.base import number
from caplens.results.robustness import ALL
from caplens.results.table import LEVEL, Table
from caplens.stats import get_coefficient

INTERVALS = f" with {LEVEL} intervals by bootstrap over images."
_ENOUGH = 20
"""Captions, for a mean by their length to say anything."""
_COUNTED = {"words": " (of characters, where a script has no spaces and no segmenter is installed)"}
_OF_PEOPLE = ("tau-b", "spearman", "pearson")


@dataclass(frozen=True)
class Plot:
    title: str
    svg: str
    about: str = ""


@dataclass
class Section:
    """One result, as the page shows it."""

    title: str
    kind: str
    counts: dict[str, str]
    signatures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    without_cases: str = ""
    """Why no captions are shown."""


def language_heatmap(
    title: str,
    about: str,
    langs: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Sequence[float | None]],
    *,
    digits: int = 3,
    by_column: bool = False,
    lower: bool = False,
    names: Mapping[str, str] | None = None,
) -> Plot:
    """Languages by something, with values and intervals; the darker the better, or with `lower` the lower."""
    values = np.array([[number(cells[lang, name][0]) if (lang, name) in cells else np.nan for name in columns] for lang in langs])
    notes = [[_with_bounds(cells.get((lang, name)), digits) for name in columns] for lang in langs]
    shown = [(names or {}).get(name, name) for name in columns]
    svg = plots.heatmap(_with_names(langs), shown, -values if lower else values, notes, by_column=by_column)
    return Plot(title, svg, about)


def _with_bounds(cell: Sequence[float | None] | None, digits: int) -> str:
    value, low, high = map(number, cell or (np.nan,) * 3)
    if np.isnan(value):
        return "–"
    shorter = max(1, digits - 1)
    return f"{value:.{digits}f}" if np.isnan(low) else f"{value:.{digits}f}\n[{low:.{shorter}f}, {high:.{shorter}f}]"


def _with_names(langs: Sequence[str]) -> list[str]:
    names = {**language_names(), ALL: "all languages"}
    return [names[lang] if lang == ALL else f"{names[lang]} ({lang})" if lang in names else lang for lang in langs]


def rating_plot(human: Floats, scores: Mapping[str, Floats], said: Mapping[str, str]) -> Plot:
    known = {metric: ~np.isnan(values) for metric, values in scores.items()}
    if not said and len(np.unique(human)) > 1:
        said = {
            metric: ", ".join(
                f"{name} {100 * float(get_coefficient(name)(values[known[metric]], human[known[metric]])):.1f}"
                for name in _OF_PEOPLE
            )
            for metric, values in scores.items()
            if known[metric].sum() > 2 and np.ptp(values[known[metric]]) > 0
        }
    both = np.all(list(known.values()), axis=0)
    shown = {metric: values[both] for metric, values in scores.items()}
    about = "Scores by what people said. Bars span the middle half, rings are medians; at most 400 captions are drawn as points."
    return Plot("Human ratings and scores", plots.against_people(human[both], shown, said), about)


def distribution_plot(scores: Mapping[str, Floats], labels: Sequence[str], by: str) -> Plot:
    which = np.array(labels)
    order = sorted(set(labels)) if by == "language" else dict.fromkeys(labels)
    groups = {
        metric: {label: column for label in order if len(column := _known(values[which == label]))}
        for metric, values in scores.items()
    }
    about = "Bars span the middle half of the captions' scores, rings are medians; fewer than ten captions are points."
    return Plot(
        f"Distribution of scores by {by}" if by != "all captions" else "Distribution of scores",
        plots.distributions(groups),
        about,
    )


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def score_columns(cases: Sequence[Case]) -> dict[str, Floats]:
    return {metric: np.array([case.scores[metric] for case in cases]) for metric in cases[0].scores}


def caption_plots(cases: Sequence[Case]) -> list[Plot]:
    """Scores by the length of captions and, where that differs, by the number of references."""
    scored = [case for case in cases if not any(np.isnan(value) for value in case.scores.values())]
    if len(scored) < _ENOUGH:
        return []
    words = np.array([float(len(split(case.sample.caption or "", case.sample.lang))) for case in scored])
    references = np.array([float(len(case.sample.references)) for case in scored])
    plots_ = []
    for title, label, numbers in (
        ("Scores and the length of captions", "words", words),
        ("Scores and the number of references", "references", references),
    ):
        if len(np.unique(numbers)) > 1:
            about = f"Mean score, and the middle half of scores, by the number of {label}{_COUNTED.get(label, '')}."
            plots_.append(Plot(title, plots.against_number(numbers, score_columns(scored), label), about))
    return plots_


def without_notes(table: Table, title: str, digits: int | None = None) -> Table:
    """Notes about how to reproduce a table are said once, for the whole section."""
    notes = [note for note in table.notes if "|" not in note and not note.startswith("To reproduce")]
    return Table(table.columns, table.rows, title, notes, digits or table.digits)

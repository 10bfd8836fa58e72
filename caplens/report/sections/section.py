"""`Section`, and the plots that several kinds of sections share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import language_names
from caplens.report import heatmaps, plots
from caplens.report.cases import Case
from caplens.results.base import number
from caplens.results.robustness import ALL
from caplens.results.table import LEVEL, Table
from caplens.stats import get_coefficient
from caplens.text.tokenizer import tokenizer_for

INTERVALS = f" with {LEVEL} intervals by bootstrap over images."
if TYPE_CHECKING:
    from caplens.report.sections.check import CheckCard

_MIN_CAPTIONS = 20
"""With fewer captions, there are no plots by length."""
_ONLY_FIRST = " (the first twelve)"
_COEFFICIENTS = ("tau-b", "spearman", "pearson")


@dataclass(frozen=True)
class Plot:
    """A plot as SVG; `about` is the note below it."""

    title: str
    svg: str
    about: str = ""


@dataclass
class Section:
    """The part of the page about one result."""

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
    headline: Sequence[str] = ()
    """What was found, in sentences."""
    limits: Sequence[str] = ()
    """Where that ends to be certain."""
    checked: "Sequence[CheckCard]" = ()
    """Captions with what is wrong with them, worst first."""
    not_shown: int = 0
    """How many more have something wrong."""
    metrics: Sequence[str] = ()
    """The metrics of the section, which the page explains."""

    @property
    def has_disagreements(self) -> bool:
        """Whether captions are shown because two metrics, or a metric and people, disagree about them."""
        return any(reason.startswith("higher by") for case in self.cases for reason in case.reasons)

    @property
    def cards(self) -> list[list[Case]]:
        """Cases that belong into one card: those of several systems about one image, in one language."""
        by_item: dict[object, list[Case]] = {}
        for place, case in enumerate(self.cases):
            item = place if case.sample.system is None else (case.sample.group, case.sample.lang)
            by_item.setdefault(item, []).append(case)
        return list(by_item.values())


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
    diverging: bool = False,
    names: Mapping[str, str] | None = None,
) -> Plot:
    """A heatmap of languages by `columns`. Cells are (value, low, high); higher values are darker, or lower ones with `lower`.

    With `diverging`, values on either side of 0 have different colours.
    """
    values = np.array([[number(cells[lang, name][0]) if (lang, name) in cells else np.nan for name in columns] for lang in langs])
    notes = [[_with_bounds(cells.get((lang, name)), digits) for name in columns] for lang in langs]
    labels = [(names or {}).get(name, name) for name in columns]
    widths = np.array([[_width_of(cells.get((lang, name))) for name in columns] for lang in langs])
    shown = -values if lower else values
    svg = heatmaps.heatmap(_language_labels(langs), labels, shown, notes, by_column=by_column, widths=widths, diverging=diverging)
    return Plot(title, svg, about)


def _width_of(cell: Sequence[float | None] | None) -> float:
    """The width of an interval; NaN if there is none."""
    return number(cell[2]) - number(cell[1]) if cell is not None else float("nan")


def _with_bounds(cell: Sequence[float | None] | None, digits: int) -> str:
    value, low, high = map(number, cell or (np.nan,) * 3)
    if np.isnan(value):
        return "–"
    bound_digits = max(1, digits - 1)
    return f"{value:.{digits}f}" if np.isnan(low) else f"{value:.{digits}f}\n[{low:.{bound_digits}f}, {high:.{bound_digits}f}]"


def _language_labels(langs: Sequence[str]) -> list[str]:
    names = {**language_names(), ALL: "all languages"}
    return [names[lang] if lang == ALL else f"{names[lang]} ({lang})" if lang in names else lang for lang in langs]


def rating_plot(human: Floats, scores: Mapping[str, Floats], agreement: Mapping[str, str]) -> Plot:
    """Scores by human rating. `agreement` is the line below each metric; if empty, coefficients are computed."""
    scored = {metric: ~np.isnan(values) for metric, values in scores.items()}
    if not agreement and len(np.unique(human)) > 1:
        agreement = {
            metric: ", ".join(
                f"{name} {100 * float(get_coefficient(name)(values[scored[metric]], human[scored[metric]])):.1f}"
                for name in _COEFFICIENTS
            )
            for metric, values in scores.items()
            if scored[metric].sum() > 2 and np.ptp(values[scored[metric]]) > 0
        }
    complete = np.all(list(scored.values()), axis=0)
    complete_scores = {metric: values[complete] for metric, values in scores.items()}
    about = "Scores by what people said. Bars span the middle half, rings are medians; at most 400 captions are drawn as points."
    return Plot("Human ratings and scores", plots.against_people(human[complete], complete_scores, agreement), about)


def distribution_plot(scores: Mapping[str, Floats], labels: Sequence[str], by: str) -> Plot:
    """The distribution of scores for each label; `by` says what the labels are."""
    label_of = np.array(labels)
    order = sorted(set(labels)) if by == "language" else dict.fromkeys(labels)
    groups = {
        metric: {label: column for label in order if len(column := _without_nan(values[label_of == label]))}
        for metric, values in scores.items()
    }
    about = "Bars span the middle half of the captions' scores, rings are medians; fewer than ten captions are points."
    return Plot(
        f"Distribution of scores by {by}" if by != "all captions" else "Distribution of scores",
        plots.distributions(groups),
        about,
    )


def _without_nan(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def score_columns(cases: Sequence[Case]) -> dict[str, Floats]:
    """Metric -> the score of each case."""
    return {metric: np.array([case.scores[metric] for case in cases]) for metric in cases[0].scores}


def caption_plots(cases: Sequence[Case]) -> list[Plot]:
    """Scores by length of caption and by number of references, where these vary."""
    scored = [case for case in cases if not any(np.isnan(value) for value in case.scores.values())]
    if len(scored) < _MIN_CAPTIONS:
        return []
    langs = [case.sample.lang or "" for case in scored]
    tokens = np.array([float(len(tokenizer_for(case.sample.lang or "en")(case.sample.caption or ""))) for case in scored])
    references = np.array([float(len(case.sample.references)) for case in scored])
    by_number = []
    for title, label, numbers in (
        ("Scores and the length of captions", "tokens", tokens),
        ("Scores and the number of references", "references", references),
    ):
        if len(np.unique(numbers)) > 1:
            lines = f"one line for each language{_ONLY_FIRST}" if len(set(langs)) > 1 else "and the middle half of scores"
            about = f"Mean score, {lines}, by the number of {label}."
            by_number.append(Plot(title, plots.against_number(numbers, score_columns(scored), label, langs), about))
    return by_number


def without_notes(table: Table, title: str, digits: int | None = None) -> Table:
    """The table under another title, without the signatures, which the section shows once."""
    notes = [note for note in table.notes if "|" not in note and not note.startswith("To reproduce")]
    return Table(table.columns, table.rows, title, notes, digits or table.digits)

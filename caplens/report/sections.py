"""What the report shows of each kind of result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caplens.bench import BenchResults, Comparison, CrossLanguage
from caplens.data.languages import base_language, language_names
from caplens.errors import InputError
from caplens.metrics import Results
from caplens.perturb import Robustness
from caplens.perturb.robustness import ALL
from caplens.perturb.words import split
from caplens.report import plots
from caplens.report.cases import Case, Places, choose, find_cases
from caplens.report.documents import ByLanguage, Document, Training, number, told
from caplens.report.tables import Cell, Table
from caplens.report.views import (
    LEVEL,
    bench_table,
    crossmodal_table,
    differences_table,
    languages_table,
    robustness_table,
    scores_table,
    significance_table,
    systems_table,
)
from caplens.stats import get_coefficient
from caplens.stats.arrays import Floats

_SURE = 0.05
_INTERVALS = f" with {LEVEL} intervals by bootstrap over images."
_ERRORS_SHOWN = 10
_ENOUGH = 20
"""Captions, for a mean by their length to say anything."""
_COUNTED = {"words": " (of characters, where a script has no spaces and no segmenter is installed)"}
_OF_PEOPLE = ("tau-b", "spearman", "pearson")
_NOTICED = (
    ("drop in percent", "drop", "Of the mean score, as PR-MCS reports it: the lower, the more is noticed."),
    ("noticed, of 100", "accuracy", "How often a caption scores higher than its perturbed form; 50 is chance."),
)


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


def make_sections(documents: Sequence[Document], given: Places) -> list[Section]:
    """A section for each result; one benchmark in several languages is also shown as a whole."""
    made = []
    for run in _in_languages(documents):
        with told(run[0].path):
            made += _languages_of_bench([document.found for document in run if isinstance(document.found, BenchResults)])
    for document in documents:
        with told(document.path):
            cases, why = _cases(document, given)
            section = _SECTIONS[type(document.found)](document, document.found, cases)
            section.without_cases = why
            section.cases = choose(cases)
            made.append(section)
    return made


def _cases(document: Document, given: Places) -> tuple[list[Case], str]:
    """What a result is about, where that is at hand; a report without it is still one."""
    try:
        return find_cases(document, given), ""
    except InputError as error:
        return [], str(error)


def _score(document: Document, results: Results, cases: list[Case]) -> Section:
    langs = [base_language(tag or document.lang) for tag in results.langs]
    made = Section(
        document.name,
        "scores",
        {
            "captions": f"{len(results.ids):,}",
            "not scored": f"{results.failed:,}",
            "cut to the model's length": _cut(scores.signature for scores in results.metrics.values()),
            "languages": ", ".join(sorted(set(langs))),
        },
        [scores.signature for scores in results.metrics.values()],
        [*results.warnings, *_problems(results)],
    )
    made.tables = [_without_notes(scores_table(results), "Scores")]
    by_language = languages_table(results)
    values = {name: scores.values for name, scores in results.metrics.items()}
    if by_language is not None:
        made.tables.append(_without_notes(by_language, "By language"))
        made.plots.append(_language_heatmap(results))
        made.plots.append(_distributions(values, langs, "language"))
    else:
        made.plots.append(_distributions(values, ["all"] * len(results.ids), "all captions"))
    made.plots += _by_caption(cases)
    rated = [case for case in cases if case.human is not None]
    if len(rated) > 1:
        human = np.array([case.human for case in rated])
        made.plots.append(_against_people(human, _columns(rated), {}))
    return made


def _language_heatmap(results: Results) -> Plot:
    metrics = list(results.metrics)
    cells = {
        (lang, metric): (value, *results.language_intervals.get(metric, {}).get(lang, (np.nan, np.nan)))
        for metric in metrics
        for lang, value in results[metric].by_language.items()
    }
    langs = sorted({lang for lang, _ in cells})
    about = f"Corpus scores{_INTERVALS} Colours compare languages within a metric."
    return _heatmap("Languages and metrics", about, langs, metrics, cells, by_column=True)


def _heatmap(
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


def _comparison(document: Document, comparison: Comparison, cases: list[Case]) -> Section:
    made = Section(
        document.name,
        "systems",
        {
            "systems": str(len(comparison.systems)),
            "captions of each": f"{comparison.samples:,}",
            "not scored": f"{comparison.failed:,}",
        },
        list(comparison.signatures.values()),
        comparison.warnings,
    )
    made.tables = [_clusters(comparison), _without_notes(systems_table(comparison), "Systems")]
    if comparison.contrasts:
        made.tables.append(_without_notes(differences_table(comparison), "Differences"))
    leading = next(iter(comparison.scores))
    order = sorted(comparison.systems, key=lambda system: -comparison.scores[leading][system].value)
    panels = {metric: [found[system] for system in order] for metric, found in comparison.scores.items()}
    cluster = clusters(comparison, leading)
    made.plots.append(
        Plot(
            "Systems side by side",
            plots.intervals(order, panels, [cluster[system] for system in order]),
            f"Scores{_INTERVALS} Systems of one colour are one cluster by {leading}: those of another"
            f" are all better or all worse with p < {_SURE} ({comparison.correction}).",
        )
    )
    values = {metric: np.concatenate([found[system] for system in order]) for metric, found in comparison.values.items() if found}
    labels = [system for system in order for _ in comparison.ids]
    if values:
        made.plots.append(_distributions(values, labels, "system"))
    made.plots += _by_caption(cases)
    return made


def _by_language(document: Document, found: ByLanguage, cases: list[Case]) -> Section:
    several = found.comparisons
    first = next(iter(several.values()))
    systems = list(dict.fromkeys(system for comparison in several.values() for system in comparison.systems))
    made = Section(
        document.name,
        "systems by language",
        {
            "systems": str(len(systems)),
            "languages": str(len(several)),
            "captions": f"{sum(comparison.samples * len(comparison.systems) for comparison in several.values()):,}",
            "not scored": f"{sum(comparison.failed for comparison in several.values()):,}",
        },
        list(dict.fromkeys(line for comparison in several.values() for line in comparison.signatures.values())),
        list(dict.fromkeys(f"{lang}: {line}" for lang, comparison in several.items() for line in comparison.warnings)),
        [_without_notes(crossmodal_table(several), "Systems by language")],
    )
    for metric in first.scores:
        cells = {(lang, system): score for lang, one in several.items() for system, score in one.scores[metric].items()}
        title = f"{metric} by language and system"
        made.plots.append(_heatmap(title, f"{metric}{_INTERVALS}", list(several), systems, cells))
    return made


def clusters(comparison: Comparison, metric: str) -> dict[str, int]:
    """System -> its cluster, from 0 for the best: every system is surely better than all those of later clusters."""
    values = {system: score.value for system, score in comparison.scores[metric].items()}
    order = sorted(values, key=lambda system: -values[system])
    sure = {
        frozenset((one.first, one.second)) for one in comparison.contrasts if one.metric == metric and one.p_corrected < _SURE
    }
    found, cluster = {}, 0
    for place, system in enumerate(order):
        if place and all(frozenset((before, after)) in sure for before in order[:place] for after in order[place:]):
            cluster += 1
        found[system] = cluster
    return found


def _clusters(comparison: Comparison) -> Table:
    by_metric = {metric: clusters(comparison, metric) for metric in comparison.scores}
    rows: list[list[Cell]] = [[system, *(found[system] + 1 for found in by_metric.values())] for system in comparison.systems]
    return Table(["system", *by_metric], rows, "Significance clusters (1 is best)")


def _bench(document: Document, results: BenchResults, cases: list[Case]) -> Section:
    made = Section(
        f"{results.benchmark} ({results.lang}, {results.protocol})",
        "agreement with people",
        {
            "captions" if results.human is None else "data points": f"{results.rows:,}",
            "images": f"{results.images:,}",
            "not scored": f"{results.failed:,}",
            "without image": f"{results.without_image:,}",
        },
        list(results.signatures.values()),
        results.warnings,
    )
    made.tables = [_without_notes(bench_table(results), "Agreement with people", digits=2)]
    if results.contrasts:
        made.tables.append(_without_notes(significance_table(results), f"Differences in {results.headline}, and p"))
    metrics = sorted(results.results, key=lambda metric: -results.results[metric][results.headline].value)
    panels = {
        name: [results.results[metric][name][:3] for metric in metrics]
        for name in [results.headline, *(name for name in results.measures if name != results.headline)]
    }
    made.plots.append(
        Plot(
            "How well metrics agree with people",
            plots.intervals(metrics, panels),
            f"Times 100,{_INTERVALS}",
        )
    )
    if results.human is not None:
        raters = results.human.shape[1]
        human = results.human.ravel()
        known = ~np.isnan(human)
        scores = {metric: np.repeat(values, raters)[known] for metric, values in results.scores.items()}
        said = {metric: _estimate(results, metric) for metric in results.scores}
        made.plots.append(_against_people(human[known], scores, said))
    made.plots.append(_distributions(results.scores, [results.lang] * len(results.ids), "all captions"))
    made.plots += _by_caption(cases)
    return made


def _estimate(results: BenchResults, metric: str) -> str:
    value, low, high, *_ = results.results[metric][results.headline]
    return f"{results.headline} {value:.1f} [{low:.1f}, {high:.1f}]"


def _against_people(human: Floats, scores: Mapping[str, Floats], said: Mapping[str, str]) -> Plot:
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


def _languages_of_bench(several: Sequence[BenchResults]) -> list[Section]:
    """One benchmark in several languages, if they have a metric in common."""
    first = several[0]
    metrics, name = _shared_metrics(several), first.headline
    if not metrics:
        return []
    cells = {(one.lang, metric): one.results[metric][name][:3] for one in several for metric in metrics}
    rows: list[list[Cell]] = [[lang, metric, *found] for (lang, metric), found in cells.items()]
    table = Table(["lang", "metric", name, f"{LEVEL} low", f"{LEVEL} high"], rows, f"{name} by language", digits=2)
    about = f"{name}, times 100,{_INTERVALS}"
    plot = _heatmap("Languages and metrics", about, [one.lang for one in several], metrics, cells, digits=1)
    made = Section(
        f"{first.benchmark}, {len(several)} languages ({first.protocol})",
        "agreement with people",
        {"languages": ", ".join(one.lang for one in several), "protocol": first.protocol},
        tables=[table],
        plots=[plot],
    )
    return [made]


def _in_languages(documents: Sequence[Document]) -> list[list[Document]]:
    """Those of one run and benchmark that differ in language."""
    grouped: dict[tuple[object, str, str], dict[str, Document]] = {}
    for document in documents:
        if isinstance(document.found, BenchResults):
            found = document.found
            grouped.setdefault((document.path or document.name, found.benchmark, found.protocol), {})[found.lang] = document
    return [list(some.values()) for some in grouped.values() if len(some) > 1]


def _shared_metrics(several: Sequence[BenchResults]) -> list[str]:
    """Metrics that have the first's main measure in every language."""
    name = several[0].headline
    return [metric for metric in several[0].results if all(name in one.results.get(metric, {}) for one in several)]


def _across(document: Document, across: CrossLanguage, cases: list[Case]) -> Section:
    made = Section(
        f"{across.benchmark} across languages ({across.protocol})",
        "the same items in several languages",
        {"items": f"{across.items:,}", "languages": ", ".join(across.langs), "protocol": across.protocol},
    )
    for metric, parts in across.correlations.items():
        for part, matrix in parts.items():
            notes = [["–" if np.isnan(value) else f"{value:.2f}" for value in line] for line in matrix]
            which = "" if part == ALL else f", {part} quality of translation"
            made.plots.append(
                Plot(
                    f"{metric}{which}",
                    plots.heatmap(across.langs, across.langs, matrix, notes),
                    "Pearson's correlation between the scores of the same items in two languages.",
                )
            )
    return made


def _robustness(document: Document, results: Robustness, cases: list[Case]) -> Section:
    impossible = sum(results.impossible.values())
    made = Section(
        document.name,
        "robustness",
        {
            "captions": f"{max((one.captions for one in results.found if one.perturbation != ALL), default=0):,}",
            "cannot be perturbed": f"{impossible:,}",
            "not scored": f"{results.failed:,}",
        },
        list(results.signatures.values()),
        results.warnings,
    )
    made.tables = [_without_notes(robustness_table(results), "Drop and share noticed")]
    for metric in dict.fromkeys(one.metric for one in results.found):
        mine = [one for one in results.found if one.metric == metric]
        kinds = list(dict.fromkeys(one.perturbation for one in mine))
        langs = list(dict.fromkeys(one.lang for one in mine))
        for title, name, about in _NOTICED:
            cells = {(one.lang, one.perturbation): [getattr(one, name + end) for end in ("", "_low", "_high")] for one in mine}
            about = f"{about} In brackets {LEVEL} intervals by bootstrap over images."
            made.plots.append(
                _heatmap(f"{metric}: {title}", about, langs, kinds, cells, digits=1, lower=name == "drop", names={ALL: "mean"})
            )
    return made


def _training(document: Document, log: Training, cases: list[Case]) -> Section:
    lines = [line for stage in log.stages.values() for line in stage]
    made = Section(
        document.name,
        "training",
        {
            "stages": ", ".join(log.stages),
            "steps": f"{sum(int(stage[-1]['step']) for stage in log.stages.values()):,}",
            "minutes": f"{sum(stage[-1].get('seconds', 0.0) for stage in log.stages.values()) / 60:.1f}",
        },
    )
    columns = list(dict.fromkeys(key for line in lines for key in line if key not in ("step", "seconds", "rate")))
    for column in columns:
        runs = {}
        for stage, some in log.stages.items():
            known = [(line["step"], line[column]) for line in some if column in line]
            if known:
                steps, values = np.array(known).T
                runs[stage] = (steps, values)
        made.plots.append(Plot(column.capitalize(), plots.curves(runs, column)))
    rows: list[list[Cell]] = [
        [stage, int(some[-1]["step"]), *(_last(some, column) for column in columns)] for stage, some in log.stages.items()
    ]
    made.tables = [Table(["stage", "last step", *columns], rows, "Where it ended", digits=4)]
    return made


def _last(lines: Sequence[Mapping[str, float]], column: str) -> float | None:
    return next((line[column] for line in reversed(lines) if column in line), None)


def _distributions(scores: Mapping[str, Floats], labels: Sequence[str], by: str) -> Plot:
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


def _columns(cases: Sequence[Case]) -> dict[str, Floats]:
    return {metric: np.array([case.scores[metric] for case in cases]) for metric in cases[0].scores}


def _by_caption(cases: Sequence[Case]) -> list[Plot]:
    """Scores by the length of captions and, where that differs, by the number of references."""
    scored = [case for case in cases if not any(np.isnan(value) for value in case.scores.values())]
    if len(scored) < _ENOUGH:
        return []
    words = np.array([float(len(split(case.sample.caption or "", case.sample.lang))) for case in scored])
    references = np.array([float(len(case.sample.references)) for case in scored])
    made = []
    for title, label, numbers in (
        ("Scores and the length of captions", "words", words),
        ("Scores and the number of references", "references", references),
    ):
        if len(np.unique(numbers)) > 1:
            about = f"Mean score, and the middle half of scores, by the number of {label}{_COUNTED.get(label, '')}."
            made.append(Plot(title, plots.against_number(numbers, _columns(scored), label), about))
    return made


def _cut(signatures: Iterable[str]) -> str:
    """How many captions were longer than the model takes, as signatures say."""
    counts = [int(part.partition(":")[2]) for line in signatures for part in line.split("|") if part.startswith("truncated:")]
    return f"{max(counts, default=0):,}"


def _problems(results: Results) -> list[str]:
    shown = [f"{identifier}: {why}" for identifier, why in list(results.errors.items())[:_ERRORS_SHOWN]]
    more = results.failed - len(shown)
    return [*(f"not scored: {one}." for one in shown), *([f"… and {more:,} more that were not scored."] if more > 0 else [])]


def _without_notes(table: Table, title: str, digits: int | None = None) -> Table:
    """Notes about how to reproduce a table are said once, for the whole section."""
    notes = [note for note in table.notes if "|" not in note and not note.startswith("To reproduce")]
    return Table(table.columns, table.rows, title, notes, digits or table.digits)


_SECTIONS: dict[type, Callable[[Document, Any, list[Case]], Section]] = {
    Results: _score,
    Comparison: _comparison,
    ByLanguage: _by_language,
    BenchResults: _bench,
    CrossLanguage: _across,
    Robustness: _robustness,
    Training: _training,
}

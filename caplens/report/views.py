"""The tables of each kind of result."""

import math

from caplens.bench import BenchResults, Comparison
from caplens.data.languages import language_names
from caplens.metrics import Results
from caplens.report.tables import Cell, Table

LEVEL = "95%"


def scores_table(results: Results) -> Table:
    """Corpus scores, a row for each metric."""
    rows: list[list[Cell]] = []
    for name, scores in results.metrics.items():
        low, high = results.intervals.get(name, (None, None))
        rows.append([name, scores.corpus, low, high])
    scored = len(results.ids) - results.failed
    notes = [
        f"{scored:,} of {len(results.ids):,} captions scored"
        + ("; intervals by bootstrap over images." if results.intervals else "."),
        "To reproduce:",
        *(scores.signature for scores in results.metrics.values()),
    ]
    return Table(["metric", "score", f"{LEVEL} low", f"{LEVEL} high"], rows, notes=notes)


def languages_table(results: Results) -> Table | None:
    """Corpus scores, a row for each language, where there are several."""
    languages = sorted({lang for scores in results.metrics.values() for lang in scores.by_language})
    if len(languages) < 2:
        return None
    rows: list[list[Cell]] = [
        [lang, *(scores.by_language.get(lang) for scores in results.metrics.values())] for lang in languages
    ]
    return Table(["language", *results.metrics], rows)


def samples_table(results: Results) -> Table:
    """The score of each caption."""
    return Table(list(next(results.to_rows())), [list(row.values()) for row in results.to_rows()])


def bench_table(results: BenchResults) -> Table:
    """A row for each coefficient and metric, with what was published beside what was found."""
    coefficients = list(next(iter(results.results.values())))
    rows: list[list[Cell]] = []
    for name in coefficients:
        for metric, found in results.results.items():
            value, low, high, published = found[name]
            rows.append([name, metric, value, low, high, published, None if published is None else abs(value - published)])
    notes = [
        f"{results.rows:,} data points about {results.images:,} images, times 100; intervals by bootstrap over images.",
        *(
            [f"Published: {results.source}; 'within' is how far from it we are."]
            if any(row[5] is not None for row in rows)
            else []
        ),
        "To reproduce:",
        *results.signatures.values(),
    ]
    lang = "" if results.lang == "en" else f", captions in {language_names()[results.lang]}"
    columns = ["coefficient", "metric", "value", f"{LEVEL} low", f"{LEVEL} high", "published", "within"]
    return Table(columns, rows, title=f"{results.benchmark}, protocol {results.protocol}{lang}", notes=notes, digits=2)


def contrasts_table(results: BenchResults) -> Table:
    """Which metrics agree with people better than which, by the benchmark's first coefficient."""
    name = results.contrasts[0].coefficient
    rows: list[list[Cell]] = [
        [contrast.first, contrast.second, contrast.difference, contrast.low, contrast.high, shown_p(contrast.p)]
        for contrast in results.contrasts
        if contrast.coefficient == name
    ]
    columns = ["metric", "minus metric", name, f"{LEVEL} low", f"{LEVEL} high", "p"]
    return Table(columns, rows, notes=["p by paired bootstrap over images, corrected by Holm."], digits=2)


def systems_table(comparison: Comparison) -> Table:
    """Rows systems, columns metrics."""
    rows: list[list[Cell]] = [
        [system, *(_with_interval(*found[system]) for found in comparison.scores.values())] for system in comparison.systems
    ]
    notes = [
        f"{comparison.samples:,} captions that all systems have; {LEVEL} intervals by bootstrap over images.",
        "To reproduce:",
        *comparison.signatures.values(),
    ]
    return Table(["system", *comparison.scores], rows, notes=notes)


def _with_interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def system_rows(comparison: Comparison) -> Table:
    """A row for each metric and two systems, in numbers."""
    rows: list[list[Cell]] = []
    for found in comparison.contrasts:
        scores = comparison.scores[found.metric]
        rows.append([found.metric, found.first, *scores[found.first], found.second, *scores[found.second], *found[3:]])
    columns = ["metric", "first", "first_value", "first_low", "first_high", "second", "second_value", "second_low", "second_high"]
    return Table([*columns, "difference", "low", "high", "p", "p_corrected"], rows)


def differences_table(comparison: Comparison) -> Table:
    """Every two systems, by each metric."""
    rows: list[list[Cell]] = [
        [found.metric, f"{found.first} − {found.second}", found.difference, found.low, found.high, shown_p(found.p_corrected)]
        for found in comparison.contrasts
    ]
    columns = ["metric", "systems", "difference", f"{LEVEL} low", f"{LEVEL} high", "p"]
    notes = [f"p by paired permutation over images, corrected by {comparison.correction}; intervals by paired bootstrap."]
    return Table(columns, rows, notes=notes)


def shown_p(p: float) -> str:
    if math.isnan(p):
        return "–"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"

"""The tables of each kind of result."""

import math

from caplens.bench import BenchResults, Comparison
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
        f"{scored:,} of {len(results.ids):,} captions scored; intervals by bootstrap over images. To reproduce:",
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
    rows = [[row["id"], *(row[name] for name in results.metrics), row.get("error")] for row in results.to_rows()]
    return Table(["id", *results.metrics, "error"], rows)


def bench_table(results: BenchResults) -> Table:
    """A row for each metric, with what was published beside what was found."""
    coefficients = list(next(iter(results.results.values())))
    columns = ["metric"]
    for name in coefficients:
        columns += [name, f"{LEVEL} low", f"{LEVEL} high", "published", "within"]
    rows: list[list[Cell]] = []
    for metric, found in results.results.items():
        row: list[Cell] = [metric]
        for name in coefficients:
            value, low, high, published = found[name]
            row += [value, low, high, published, None if published is None else abs(value - published)]
        rows.append(row)
    notes = [
        f"{results.rows:,} data points about {results.images:,} images, times 100; intervals by bootstrap over images.",
        f"Published: {results.source}. 'within' is how far from it we are.",
    ]
    return Table(columns, rows, title=f"{results.benchmark}, protocol {results.protocol}", notes=notes, digits=2)


def contrasts_table(results: BenchResults) -> Table:
    """Which metrics agree with people better than which."""
    rows: list[list[Cell]] = [
        [
            contrast.coefficient,
            contrast.first,
            contrast.second,
            contrast.difference,
            contrast.low,
            contrast.high,
            shown_p(contrast.p),
        ]
        for contrast in results.contrasts
    ]
    columns = ["coefficient", "metric", "minus metric", "difference", f"{LEVEL} low", f"{LEVEL} high", "p"]
    return Table(columns, rows, notes=["p by paired bootstrap over images, corrected by Holm."], digits=2)


def systems_table(comparison: Comparison) -> Table:
    """Rows systems, columns metrics."""
    rows: list[list[Cell]] = []
    for system in comparison.systems:
        row: list[Cell] = [system]
        for found in comparison.scores.values():
            row += [found[system].value, f"[{found[system].low:.3f}, {found[system].high:.3f}]"]
        rows.append(row)
    columns = ["system"]
    for metric in comparison.scores:
        columns += [metric, LEVEL]
    return Table(columns, rows, notes=[f"{comparison.samples:,} captions that all systems have."])


def differences_table(comparison: Comparison) -> Table:
    rows: list[list[Cell]] = [
        [
            found.metric,
            found.first,
            found.second,
            found.difference,
            found.low,
            found.high,
            shown_p(found.p),
            shown_p(found.p_corrected),
        ]
        for found in comparison.contrasts
    ]
    columns = [
        "metric",
        "system",
        "minus system",
        "difference",
        f"{LEVEL} low",
        f"{LEVEL} high",
        "p",
        f"p ({comparison.correction})",
    ]
    return Table(columns, rows, notes=["p by paired permutation over images, intervals by paired bootstrap."])


def shown_p(p: float) -> str:
    if math.isnan(p):
        return "–"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"

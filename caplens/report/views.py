"""The tables of each kind of result."""

import math
from collections.abc import Mapping, Sequence

from caplens.bench import BenchResults, Comparison, CrossLanguage
from caplens.bench.crossmodal3600 import Statistics, published_statistics
from caplens.data.languages import language_names
from caplens.metrics import Results
from caplens.perturb import Noticed, Robustness
from caplens.report.tables import Cell, Table

LEVEL = "95%"
_CONVINCING = 0.01


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
    """A row for each measure and metric, with what was published beside what was found."""
    rows: list[list[Cell]] = []
    for name in results.measures:
        for metric, found in results.results.items():
            value, low, high, published, points, ties = found[name]
            rows.append([name, metric, value, low, high, published, within(results, metric, name), points, ties])
    # Accuracies are about comparisons, of which each measure has its own number, and some of which may be ties.
    contest = any(row[8] is not None for row in rows)
    notes = [
        f"{results.rows:,} {'captions' if contest else 'data points'} about {results.images:,} images, times 100; intervals by"
        " bootstrap over images.",
        *(
            [f"Published: {results.source}; 'within' is how far from it we are, where the model is the same."]
            if any(row[5] is not None for row in rows)
            else []
        ),
        "To reproduce:",
        *results.signatures.values(),
    ]
    columns = ["measure", "metric", "value", f"{LEVEL} low", f"{LEVEL} high", "published", "within", "points", "ties"]
    kept = [
        place
        for place in range(len(columns))
        if place < 5 or (place < 7 and any(row[place] is not None for row in rows)) or (place >= 7 and contest)
    ]
    chosen = [[row[place] for place in kept] for row in rows]
    return Table([columns[place] for place in kept], chosen, title=_bench_title(results), notes=notes, digits=2)


def within(results: BenchResults, metric: str, measure: str) -> float | None:
    """How far a value is from the published one; nothing for models that caplens trained, which no paper is about."""
    estimate = results.results[metric][measure]
    _, of_model, rest = results.signatures[metric].partition("|model:")
    if estimate.published is None or (of_model and ":" not in rest.partition("|")[0]):
        return None
    return abs(estimate.value - estimate.published)


def _bench_title(results: BenchResults) -> str:
    lang = "" if results.lang == "en" else f", captions in {language_names()[results.lang]}"
    return f"{results.benchmark}, protocol {results.protocol}{lang}"


def significance_table(results: BenchResults) -> Table:
    """Which metrics agree with people better than which, by the benchmark's main measure: row minus column, and p."""
    name, metrics = results.headline, list(results.results)
    cells: dict[tuple[str, str], str] = {}
    for contrast in results.contrasts:
        if contrast.measure == name:
            p = shown_p(contrast.p)
            for pair, difference in (
                ((contrast.first, contrast.second), contrast.difference),
                ((contrast.second, contrast.first), -contrast.difference),
            ):
                cells[pair] = "–" if math.isnan(difference) else f"{difference:+.2f} ({p})"
    rows: list[list[Cell]] = [[row, *("" if row == column else cells[row, column] for column in metrics)] for row in metrics]
    pairs = len(metrics) * (len(metrics) - 1) // 2
    smallest = min(1.0, pairs * 2 / (results.resamples + 1))
    notes = [f"Row minus column in {name}, and p by paired bootstrap over images, corrected by Holm."]
    if smallest > _CONVINCING:
        notes.append(f"With {results.resamples} resamples no p can be below {smallest:.3f}; take more.")
    return Table(["metric", *metrics], rows, notes=notes)


def benchmarks_table(many: Sequence[BenchResults]) -> Table:
    """A row for each benchmark, protocol, language, measure and metric."""
    rows: list[list[Cell]] = []
    for results in many:
        for name in results.measures:
            for metric, found in results.results.items():
                value, low, high, published, points, ties = found[name]
                about = [results.benchmark, results.protocol, results.lang, name, metric]
                rows.append([*about, value, low, high, published, within(results, metric, name), points, ties])
    columns = [
        "benchmark",
        "protocol",
        "lang",
        "measure",
        "metric",
        "value",
        "low",
        "high",
        "published",
        "within",
        "points",
        "ties",
    ]
    return Table(columns, rows, digits=2)


def by_language_table(many: Sequence[BenchResults]) -> Table:
    """One benchmark in several languages: a column for each, with published values in brackets, and the mean over them."""
    rows: list[list[Cell]] = []
    first = many[0]
    shared = [metric for metric in first.results if all(metric in results.results for results in many)]
    published = False
    for name in (name for name in first.measures if all(name in results.measures for results in many)):
        for metric in shared:
            estimates = [results.results[metric][name] for results in many]
            overall = sum(estimate.value for estimate in estimates) / len(estimates)
            if any(estimate.published is not None for estimate in estimates):
                published = True
                shown = [f"{one.value:.1f}" + ("" if one.published is None else f" ({one.published})") for one in estimates]
                rows.append([name, metric, *shown, f"{overall:.1f}"])
            else:
                rows.append([name, metric, *(estimate.value for estimate in estimates), overall])
    sources = list(dict.fromkeys(results.source for results in many if results.source))
    return Table(
        ["measure", "metric", *(results.lang for results in many), "overall"],
        rows,
        title=f"{first.benchmark}, protocol {first.protocol}, by language",
        notes=[
            "Times 100; overall is the mean of the languages. Intervals, ties and signatures are in the JSON.",
            *([f"In brackets: {'; '.join(sources)}."] if published else []),
        ],
        digits=1,
    )


def by_protocol_table(many: Sequence[BenchResults]) -> Table:
    """How the ranking of metrics changes with the way ratings are aggregated: value and rank."""
    name = many[0].headline
    rows: list[list[Cell]] = []
    for metric in dict.fromkeys(metric for results in many for metric in results.results):
        cells: list[Cell] = []
        for results in many:
            if metric not in results.results:
                cells.append(None)
                continue
            values = {other: found[name].value for other, found in results.results.items()}
            rank = 1 + sum(value > values[metric] for value in values.values())
            cells.append(f"{values[metric]:.2f} ({rank})")
        rows.append([metric, *cells])
    return Table(
        ["metric", *(results.protocol for results in many)],
        rows,
        title=f"{many[0].benchmark} ({many[0].lang}), {name} by protocol",
        notes=["Times 100, and in brackets the metric's rank among these."],
    )


def cross_language_table(found: CrossLanguage, metric: str) -> Table:
    """Pearson's correlation between the scores of the same items in two languages."""
    parts = found.correlations[metric]
    rows: list[list[Cell]] = [
        [part, lang, *(float(value) for value in line)]
        for part, matrix in parts.items()
        for lang, line in zip(found.langs, matrix, strict=True)
    ]
    notes = [f"Pearson's correlation between the scores of {found.items:,} items in two languages."]
    if len(parts) > 1:
        counts = ", ".join(f"{lang} {count:,}" for lang, count in found.known.items())
        notes.append(f"low and high: translations below the 25th and above the 75th percentile of quality (known of: {counts}).")
    return Table(
        ["items", "lang", *found.langs],
        rows,
        title=f"{found.benchmark}, {metric} across languages (protocol {found.protocol})",
        notes=notes,
    )


def crossmodal_statistics_table(statistics: Sequence[Statistics]) -> Table:
    """What Crossmodal-3600 holds, with what its paper counts in brackets where that differs."""
    published = published_statistics()
    rows: list[list[Cell]] = []
    for one in statistics:
        theirs = published.get(one.lang)
        cells: list[Cell] = [one.lang]
        for place, value in enumerate(one[1:], 1):
            shown = f"{value:.1f}" if isinstance(value, float) else f"{value:,}"
            paper = None if theirs is None else theirs[place]
            same = paper is None or round(value, 1) == paper
            cells.append(shown if same else f"{shown} ({paper:,})")
        rows.append(cells)
    notes = [
        f"{sum(one.captions for one in statistics):,} captions. In brackets: table 1 of Thapliyal et al. 2022, where it differs."
    ]
    columns = ["lang", "captions", "images with 1", "with 2", "with 3+", "words", "characters"]
    return Table(columns, rows, title="crossmodal-3600", notes=notes)


def crossmodal_table(found: Mapping[str, Comparison]) -> Table:
    """Rows languages and systems, columns metrics with intervals, and how a system compares with the first."""
    rows: list[list[Cell]] = []
    metrics = list(next(iter(found.values())).scores)
    for lang, comparison in found.items():
        first = comparison.systems[0]
        p = {
            (contrast.second, contrast.metric): contrast.p_corrected
            for contrast in comparison.contrasts
            if contrast.first == first
        }
        for system in comparison.systems:
            cells = [_with_interval(*comparison.scores[metric][system]) for metric in metrics]
            tests = [shown_p(p[system, metric]) if (system, metric) in p else "" for metric in metrics]
            rows.append([lang, system, comparison.samples, *cells, *tests])
    several = any(len(comparison.systems) > 1 for comparison in found.values())
    columns = ["lang", "system", "captions", *metrics, *(f"p, {metric}" for metric in metrics)]
    kept = len(columns) if several else len(columns) - len(metrics)
    notes = [
        f"{LEVEL} intervals by bootstrap over images." + (" p against the first system, corrected by Holm." if several else "")
    ]
    signatures = list(dict.fromkeys(text for comparison in found.values() for text in comparison.signatures.values()))
    notes += ["To reproduce:", *signatures]
    return Table(columns[:kept], [row[:kept] for row in rows], title="crossmodal-3600, by language", notes=notes)


def robustness_table(results: Robustness) -> Table:
    """Rows metrics and languages, columns perturbations: the drop in percent, and how often the worse caption scores lower."""
    kinds = list(dict.fromkeys(one.perturbation for one in results.found))
    rows: list[list[Cell]] = []
    by_row: dict[tuple[str, str], dict[str, Noticed]] = {}
    for one in results.found:
        by_row.setdefault((one.metric, one.lang), {})[one.perturbation] = one
    for (metric, lang), found in by_row.items():
        drops = [f"{found[kind].drop:+.1f}" if kind in found else None for kind in kinds]
        shares = [f"{found[kind].accuracy:.1f}" if kind in found else None for kind in kinds]
        rows += [[metric, lang, "drop, %", *drops], [metric, lang, "noticed, %", *shares]]
    impossible = ", ".join(f"{name} {count}" for name, count in results.impossible.items() if count)
    notes = [
        "drop: of the mean score, as in PR-MCS; noticed: of 100 captions, how many score higher than their perturbed form.",
        *([f"Captions that cannot be perturbed so: {impossible}."] if impossible else []),
        "To reproduce:",
        *results.signatures.values(),
    ]
    return Table(["metric", "lang", "", *kinds], rows, notes=notes)


def robustness_rows(results: Robustness) -> Table:
    """A row for each metric, language and perturbation, with intervals."""
    return Table(list(Noticed._fields), [list(one) for one in results.found])


def crossmodal_rows(found: Mapping[str, Comparison]) -> Table:
    """The same in numbers, a row for each language, system and metric."""
    rows: list[list[Cell]] = [
        [lang, system, metric, comparison.samples, *scores[system]]
        for lang, comparison in found.items()
        for metric, scores in comparison.scores.items()
        for system in comparison.systems
    ]
    return Table(["lang", "system", "metric", "captions", "value", "low", "high"], rows)


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

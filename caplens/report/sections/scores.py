"""The section about the scores of captions."""

from collections.abc import Iterable

import numpy as np

from caplens.data.languages import base_language
from caplens.report import heatmaps
from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import (
    INTERVALS,
    Plot,
    Section,
    caption_plots,
    distribution_plot,
    language_heatmap,
    rating_plot,
    score_columns,
    without_notes,
)
from caplens.results.scores import ScoreResult
from caplens.stats import bootstrap_pooled, interval
from caplens.stats.means import mean_pool, mean_statistics

_ERRORS_SHOWN = 10
_RESAMPLES = 500


def score_section(document: Document, results: ScoreResult, cases: list[Case]) -> Section:
    """The section about one set of captions."""
    langs = [base_language(tag or document.lang) for tag in results.langs]
    section = Section(
        document.name,
        "scores",
        {
            "captions": f"{len(results.ids):,}",
            "not scored": f"{results.failed:,}",
            "cut to the model's length": _truncated(scores.signature for scores in results.metrics.values()),
            "languages": ", ".join(sorted(set(langs))),
        },
        [scores.signature for scores in results.metrics.values()],
        [*results.warnings, *_error_lines(results)],
    )
    section.tables = [without_notes(results.corpus_table(), "Scores")]
    by_language = results.language_table()
    values = {name: scores.values for name, scores in results.metrics.items()}
    if by_language is not None:
        section.tables.append(without_notes(by_language, "By language"))
        section.tables += [without_notes(table, table.title) for table in results.pair_tables()]
        section.plots.append(_language_heatmap(results))
        section.plots += _correlation_heatmaps(results)
        section.plots.append(distribution_plot(values, langs, "language"))
    else:
        section.plots.append(distribution_plot(values, ["all"] * len(results.ids), "all captions"))
    section.plots += caption_plots(cases)
    rated = [case for case in cases if case.human is not None]
    if len(rated) > 1:
        human = np.array([case.human for case in rated])
        section.plots.append(rating_plot(human, score_columns(rated), {}))
    return section


def _language_heatmap(results: ScoreResult) -> Plot:
    metrics = list(results.metrics)
    cells = {
        (lang, metric): (value, *results.language_intervals.get(metric, {}).get(lang, (np.nan, np.nan)))
        for metric in metrics
        if metric not in results.levels
        for lang, value in results[metric].by_language.items()
    }
    cells |= {
        (lang, metric): (value, *_percentile_interval(results, metric, lang))
        for metric in results.levels
        for lang, value in results.percentiles_by_language(metric).items()
    }
    langs = sorted({lang for lang, _ in cells})
    about = f"Corpus scores{INTERVALS} Colours compare languages within a metric."
    if results.levels:
        about += f" Of {', '.join(results.levels)}: the mean percentile among good captions of the language."
    digits = 1 if len(results.levels) == len(metrics) else 3
    names = {metric: f"{metric} percentile" for metric in results.levels}
    return language_heatmap("Languages and metrics", about, langs, metrics, cells, digits=digits, by_column=True, names=names)


def _percentile_interval(results: ScoreResult, metric: str, lang: str) -> tuple[float, float]:
    """Of the mean percentile of the captions in a language, by bootstrap over images."""
    good = results.levels[metric].good
    rows = [row for row, tag in enumerate(results.langs) if base_language(tag or "en") == lang and not np.isnan(good[row])]
    groups = [results.groups[row] for row in rows]
    return interval(bootstrap_pooled(mean_statistics(good[rows]), mean_pool, groups, _RESAMPLES))


def _correlation_heatmaps(results: ScoreResult) -> list[Plot]:
    """Do scores of the same images agree across languages? One plot per metric, where languages share images."""
    correlations = []
    for metric, pairs in results.language_pairs.items():
        langs = sorted({lang for pair in pairs if pair.paired for lang in (pair.first, pair.second)})
        if len(langs) < 2:
            continue
        matrix = np.eye(len(langs))
        for pair in pairs:
            if pair.paired:
                first, second = langs.index(pair.first), langs.index(pair.second)
                matrix[first, second] = matrix[second, first] = pair.correlation
        notes = [["–" if np.isnan(value) else f"{value:.2f}" for value in line] for line in matrix]
        about = "Pearson's correlation between the scores of the same images in two languages."
        correlations.append(Plot(f"{metric} across languages", heatmaps.heatmap(langs, langs, matrix, notes), about))
    return correlations


def _truncated(signatures: Iterable[str]) -> str:
    """The number of captions longer than the input of the model, from the signatures."""
    counts = [int(part.partition(":")[2]) for line in signatures for part in line.split("|") if part.startswith("truncated:")]
    return f"{max(counts, default=0):,}"


def _error_lines(results: ScoreResult) -> list[str]:
    """The first captions that failed and the reasons, then the number of others."""
    errors = results.labelled_errors(results.failed_rows)
    shown = [f"not scored: {label}: {why}." for label, why in list(errors.items())[:_ERRORS_SHOWN]]
    more = len(errors) - len(shown)
    return [*shown, *([f"… and {more:,} more that were not scored."] if more > 0 else [])]

"""The sections about agreement with people: of one benchmark, of several languages, and across languages."""

from collections.abc import Sequence

import numpy as np

from caplens.report import heatmaps, plots
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
    without_notes,
)
from caplens.results.agreement import AgreementResult
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.robustness import ALL
from caplens.results.table import LEVEL, Cell, Table


def agreement_section(document: Document, results: AgreementResult, cases: list[Case]) -> Section:
    """The section about one benchmark in one language."""
    section = Section(
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
    section.tables = [without_notes(results.measures_table(), "Agreement with people", digits=2)]
    if results.contrasts:
        section.tables.append(without_notes(results.significance_table(), f"Differences in {results.headline}, and p"))
    own_ratings = results.own_ratings_table()
    if own_ratings is not None:
        section.tables.append(own_ratings)
    section.plots.append(_agreement_plot(results))
    if results.human is not None:
        raters = results.human.shape[1]
        human = results.human.ravel()
        rated = ~np.isnan(human)
        scores = {metric: np.repeat(values, raters)[rated] for metric, values in results.scores.items()}
        estimates = {metric: _estimate(results, metric) for metric in results.scores}
        section.plots.append(rating_plot(human[rated], scores, estimates))
    section.plots.append(distribution_plot(results.scores, [results.lang] * len(results.ids), "all captions"))
    section.plots += caption_plots(cases)
    return section


def _agreement_plot(results: AgreementResult) -> Plot:
    """Every measure of every metric, beside published values and the agreement of people with each other."""
    metrics = sorted(results.results, key=lambda metric: -results.results[metric][results.headline].value)
    panels = {
        name: [results.results[metric][name][:3] for metric in metrics]
        for name in [results.headline, *(name for name in results.measures if name != results.headline)]
    }
    published = {name: [_published(results, metric, name) for metric in metrics] for name in panels}
    ceilings = {} if results.raters is None else results.raters.ceiling
    about = f"Times 100,{INTERVALS}"
    if any(value is not None for values in published.values() for value in values):
        about += " Diamonds are published values, where the model is the same."
    if ceilings.keys() & panels.keys():
        about += " The dashed line is how far people agree with each other."
    return Plot("How well metrics agree with people", plots.intervals(metrics, panels, (), published, ceilings), about)


def _published(results: AgreementResult, metric: str, measure: str) -> float | None:
    """The published value, where it is of the same model."""
    return results.results[metric][measure].published if metric in results.same_model else None


def _estimate(results: AgreementResult, metric: str) -> str:
    """The main measure of a metric with its interval, as text."""
    value, low, high, *_ = results.results[metric][results.headline]
    return f"{results.headline} {value:.1f} [{low:.1f}, {high:.1f}]"


def languages_sections(results: Sequence[AgreementResult]) -> list[Section]:
    """The section about one benchmark in several languages; none if no metric is in all of them."""
    first = results[0]
    metrics, name = _shared_metrics(results), first.headline
    if not metrics:
        return []
    cells = {(result.lang, metric): result.results[metric][name][:3] for result in results for metric in metrics}
    rows: list[list[Cell]] = [[lang, metric, *estimate] for (lang, metric), estimate in cells.items()]
    table = Table(["lang", "metric", name, f"{LEVEL} low", f"{LEVEL} high"], rows, f"{name} by language", digits=2)
    about = f"{name}, times 100,{INTERVALS}"
    langs = [result.lang for result in results]
    plot = language_heatmap("Languages and metrics", about, langs, metrics, cells, digits=1)
    section = Section(
        f"{first.benchmark}, {len(results)} languages ({first.protocol})",
        "agreement with people",
        {"languages": ", ".join(langs), "protocol": first.protocol},
        tables=[table],
        plots=[plot],
    )
    return [section]


def _shared_metrics(results: Sequence[AgreementResult]) -> list[str]:
    """Metrics that have the main measure of the first result in every language."""
    name = results[0].headline
    return [metric for metric in results[0].results if all(name in result.results.get(metric, {}) for result in results)]


def correlation_section(document: Document, result: LanguageCorrelation, cases: list[Case]) -> Section:
    """The section about the scores of the same items in several languages."""
    section = Section(
        f"{result.benchmark} across languages ({result.protocol})",
        "the same items in several languages",
        {"items": f"{result.items:,}", "languages": ", ".join(result.langs), "protocol": result.protocol},
    )
    for metric, parts in result.correlations.items():
        for part, matrix in parts.items():
            notes = [["–" if np.isnan(value) else f"{value:.2f}" for value in line] for line in matrix]
            quality = "" if part == ALL else f", {part} quality of translation"
            section.plots.append(
                Plot(
                    f"{metric}{quality}",
                    heatmaps.heatmap(result.langs, result.langs, matrix, notes),
                    "Pearson's correlation between the scores of the same items in two languages.",
                )
            )
    return section

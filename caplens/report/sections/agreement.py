"""The sections about agreement with people, on one benchmark, in several languages, and across them."""

from collections.abc import Sequence

import numpy as np

from caplens.report import plots
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
    metrics = sorted(results.results, key=lambda metric: -results.results[metric][results.headline].value)
    panels = {
        name: [results.results[metric][name][:3] for metric in metrics]
        for name in [results.headline, *(name for name in results.measures if name != results.headline)]
    }
    section.plots.append(
        Plot(
            "How well metrics agree with people",
            plots.intervals(metrics, panels),
            f"Times 100,{INTERVALS}",
        )
    )
    if results.human is not None:
        raters = results.human.shape[1]
        human = results.human.ravel()
        known = ~np.isnan(human)
        scores = {metric: np.repeat(values, raters)[known] for metric, values in results.scores.items()}
        said = {metric: _estimate(results, metric) for metric in results.scores}
        section.plots.append(rating_plot(human[known], scores, said))
    section.plots.append(distribution_plot(results.scores, [results.lang] * len(results.ids), "all captions"))
    section.plots += caption_plots(cases)
    return section


def _estimate(results: AgreementResult, metric: str) -> str:
    value, low, high, *_ = results.results[metric][results.headline]
    return f"{results.headline} {value:.1f} [{low:.1f}, {high:.1f}]"


def languages_sections(several: Sequence[AgreementResult]) -> list[Section]:
    """One benchmark in several languages, if they have a metric in common."""
    first = several[0]
    metrics, name = _shared_metrics(several), first.headline
    if not metrics:
        return []
    cells = {(one.lang, metric): one.results[metric][name][:3] for one in several for metric in metrics}
    rows: list[list[Cell]] = [[lang, metric, *found] for (lang, metric), found in cells.items()]
    table = Table(["lang", "metric", name, f"{LEVEL} low", f"{LEVEL} high"], rows, f"{name} by language", digits=2)
    about = f"{name}, times 100,{INTERVALS}"
    plot = language_heatmap("Languages and metrics", about, [one.lang for one in several], metrics, cells, digits=1)
    section = Section(
        f"{first.benchmark}, {len(several)} languages ({first.protocol})",
        "agreement with people",
        {"languages": ", ".join(one.lang for one in several), "protocol": first.protocol},
        tables=[table],
        plots=[plot],
    )
    return [section]


def _shared_metrics(several: Sequence[AgreementResult]) -> list[str]:
    """Metrics that have the first's main measure in every language."""
    name = several[0].headline
    return [metric for metric in several[0].results if all(name in one.results.get(metric, {}) for one in several)]


def correlation_section(document: Document, across: LanguageCorrelation, cases: list[Case]) -> Section:
    section = Section(
        f"{across.benchmark} across languages ({across.protocol})",
        "the same items in several languages",
        {"items": f"{across.items:,}", "languages": ", ".join(across.langs), "protocol": across.protocol},
    )
    for metric, parts in across.correlations.items():
        for part, matrix in parts.items():
            notes = [["–" if np.isnan(value) else f"{value:.2f}" for value in line] for line in matrix]
            which = "" if part == ALL else f", {part} quality of translation"
            section.plots.append(
                Plot(
                    f"{metric}{which}",
                    plots.heatmap(across.langs, across.langs, matrix, notes),
                    "Pearson's correlation between the scores of the same items in two languages.",
                )
            )
    return section

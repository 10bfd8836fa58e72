"""The sections that compare systems, in one language or in several."""

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
    without_notes,
)
from caplens.results.comparison import Comparison, LanguageComparison
from caplens.results.table import Cell, Table

_SIGNIFICANT = 0.05


def comparison_section(document: Document, comparison: Comparison, cases: list[Case]) -> Section:
    """The section about systems on the same captions."""
    section = Section(
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
    section.tables = [without_notes(comparison.systems_table(), "Systems")]
    if comparison.separable:
        section.tables.insert(0, _cluster_table(comparison))
    if comparison.contrasts:
        section.tables.append(without_notes(comparison.differences_table(), "Differences"))
    leading = next(iter(comparison.scores))
    order = sorted(comparison.systems, key=lambda system: -comparison.scores[leading][system].value)
    panels = {metric: [by_system[system] for system in order] for metric, by_system in comparison.scores.items()}
    about = f"Scores{INTERVALS}"
    if comparison.separable:
        cluster = clusters(comparison, leading)
        about += (
            f" Systems of one colour are one cluster by {leading}: those of another are all better or all worse with"
            f" p < {_SIGNIFICANT} ({comparison.correction})."
        )
    else:
        cluster = dict.fromkeys(order, 0)
    colours = [cluster[system] for system in order]
    section.plots.append(Plot("Systems side by side", plots.intervals(order, panels, colours), about))
    values = {
        metric: np.concatenate([by_system[system] for system in order])
        for metric, by_system in comparison.values.items()
        if by_system
    }
    labels = [system for system in order for _ in comparison.ids]
    if values:
        section.plots.append(distribution_plot(values, labels, "system"))
    section.plots += caption_plots(cases)
    return section


def language_section(document: Document, result: LanguageComparison, cases: list[Case]) -> Section:
    """The section about systems compared in each of several languages."""
    comparisons = result.comparisons
    first = next(iter(comparisons.values()))
    systems = list(dict.fromkeys(system for comparison in comparisons.values() for system in comparison.systems))
    section = Section(
        document.name,
        "systems by language",
        {
            "systems": str(len(systems)),
            "languages": str(len(comparisons)),
            "captions": f"{sum(comparison.samples * len(comparison.systems) for comparison in comparisons.values()):,}",
            "not scored": f"{sum(comparison.failed for comparison in comparisons.values()):,}",
        },
        list(dict.fromkeys(line for comparison in comparisons.values() for line in comparison.signatures.values())),
        list(dict.fromkeys(f"{lang}: {line}" for lang, comparison in comparisons.items() for line in comparison.warnings)),
        [without_notes(result.language_table(), "Systems by language")],
    )
    for metric in first.scores:
        cells = {
            (lang, system): score
            for lang, comparison in comparisons.items()
            for system, score in comparison.scores[metric].items()
        }
        title = f"{metric} by language and system"
        section.plots.append(language_heatmap(title, f"{metric}{INTERVALS}", list(comparisons), systems, cells))
        section.plots += [_region_heatmap(result, metric, system) for system in systems if result.regions]
    return section


def _region_heatmap(result: LanguageComparison, metric: str, system: str) -> Plot:
    """The scores of one system by the language of captions and the region of images."""
    cells = {
        (lang, score.region): (score.value, float("nan"), float("nan"))
        for lang, scores in result.regions.items()
        for score in scores
        if (score.metric, score.system) == (metric, system)
    }
    regions = sorted({region for _, region in cells})
    about = f"Mean {metric} of {system} on the images that were chosen for each region (columns), by the language of captions."
    return language_heatmap(f"{metric} of {system} by region", about, list(result.regions), regions, cells, digits=2)


def clusters(comparison: Comparison, metric: str) -> dict[str, int]:
    """System -> cluster, 0 for the best: every system is significantly better than all systems of later clusters."""
    values = {system: score.value for system, score in comparison.scores[metric].items()}
    order = sorted(values, key=lambda system: -values[system])
    significant = {
        frozenset((contrast.first, contrast.second))
        for contrast in comparison.contrasts
        if contrast.metric == metric and contrast.p_corrected < _SIGNIFICANT
    }
    by_system, cluster = {}, 0
    for place, system in enumerate(order):
        if place and all(frozenset((before, after)) in significant for before in order[:place] for after in order[place:]):
            cluster += 1
        by_system[system] = cluster
    return by_system


def _cluster_table(comparison: Comparison) -> Table:
    by_metric = {metric: clusters(comparison, metric) for metric in comparison.scores}
    rows: list[list[Cell]] = [
        [system, *(by_system[system] + 1 for by_system in by_metric.values())] for system in comparison.systems
    ]
    return Table(["system", *by_metric], rows, "Significance clusters (1 is best)")

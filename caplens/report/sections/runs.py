"""The section that puts several runs beside each other: every metric of every result of scores on the page."""

from collections.abc import Mapping, Sequence

import numpy as np

from caplens.report import plots
from caplens.report.documents import Document
from caplens.report.sections.section import INTERVALS, Plot, Section
from caplens.results.scores import ScoreResult
from caplens.results.table import Cell, Table, with_interval

_NAN = (float("nan"), float("nan"))


def runs_sections(documents: Sequence[Document]) -> list[Section]:
    """One section if the page has several results of scores, else none."""
    runs = _named_runs(documents)
    metrics = list(dict.fromkeys(metric for run in runs.values() for metric in run.metrics))
    if len(runs) < 2:
        return []
    rows: list[list[Cell]] = [[name, len(run.ids), *(_cell(run, metric) for metric in metrics)] for name, run in runs.items()]
    shared = [metric for metric in metrics if all(metric in run.metrics for run in runs.values())]
    section = Section(
        "All runs",
        "several runs",
        {"runs": f"{len(runs):,}", "captions": f"{sum(len(run.ids) for run in runs.values()):,}"},
        tables=[Table(["run", "captions", *metrics], rows, "Runs side by side")],
        warnings=_other_signatures(runs, shared),
        limits=["Runs may have other captions: 'caplens compare' tests systems on the same ones, 'caplens drift' others."],
        metrics=metrics,
    )
    if panels := _panels(runs, shared):
        section.plots.append(Plot("Runs side by side", plots.intervals(list(runs), panels), f"Scores{INTERVALS}"))
    return [section]


def _named_runs(documents: Sequence[Document]) -> dict[str, ScoreResult]:
    """The results of scores; of those with one name, later ones have a number."""
    runs: dict[str, ScoreResult] = {}
    for document in documents:
        if isinstance(document.result, ScoreResult):
            number = sum(name == document.name or name.startswith(f"{document.name} (") for name in runs)
            runs[f"{document.name} ({number + 1})" if number else document.name] = document.result
    return runs


def _panels(runs: Mapping[str, ScoreResult], metrics: Sequence[str]) -> dict[str, list[tuple[float, float, float]]]:
    """Metric -> score and interval of each run, for metrics that have a corpus score in all."""
    return {
        metric: [(run[metric].corpus, *run.intervals.get(metric, _NAN)) for run in runs.values()]
        for metric in metrics
        if not any(np.isnan(run[metric].corpus) for run in runs.values())
    }


def _other_signatures(runs: Mapping[str, ScoreResult], metrics: Sequence[str]) -> list[str]:
    """Which metrics were not computed alike in all runs."""
    differing = [metric for metric in metrics if len({run[metric].signature for run in runs.values()}) > 1]
    return [f"{metric}: the signatures of the runs differ; their scores may not be on one scale." for metric in differing]


def _cell(run: ScoreResult, metric: str) -> Cell:
    if metric not in run.metrics:
        return None
    low, high = run.intervals.get(metric, _NAN)
    corpus = run[metric].corpus
    return with_interval(corpus, low, high) if low == low else corpus

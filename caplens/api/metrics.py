"""The metrics of a task, from what a caller passes."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import cast

from caplens.metrics.base import Metric
from caplens.metrics.defaults import Task, default_metrics
from caplens.metrics.options import ModelChoice, ScoringKeywords, ScoringOptions
from caplens.metrics.registry import MetricChoice, build_metrics

Metrics = Sequence[MetricChoice] | str
"""Names, `Metric` objects or functions; one name, or several with commas."""


def metrics_of(task: Task, metrics: Metrics | None, images: object, options: ScoringOptions) -> list[Metric]:
    """The metrics of a task; without names, its defaults."""
    if metrics is None:
        metrics = default_metrics(task, with_images=images is not None or options.model is not None)
    listed = [part.strip() for part in metrics.split(",") if part.strip()] if isinstance(metrics, str) else metrics
    if not isinstance(listed, Sequence):
        listed = [listed]
    return build_metrics(listed, options)


def metrics_of_models(
    task: Task,
    metrics: Metrics | None,
    images: object,
    models: Sequence[ModelChoice] | None,
    options: ScoringOptions | None,
    keywords: ScoringKeywords,
) -> list[Metric]:
    """The metrics of a task; with several models, those that need one are made with each and called `clipscore[MODEL]`."""
    model = keywords.get("model")
    if isinstance(model, list | tuple):
        models = cast(Sequence[ModelChoice], model)
        keywords = {**keywords, "model": None}
    chosen = ScoringOptions.of(options, **keywords)
    if not models or len(models) < 2:
        return metrics_of(task, metrics, images, replace(chosen, model=models[0]) if models else chosen)
    # Metrics that the caller made have a model of their own.
    own_models = {entry.name for entry in metrics or () if isinstance(entry, Metric)}
    built: dict[str, Metric] = {}
    for model in models:
        engine = replace(chosen, model=model).engine()
        for metric in map(copy, metrics_of(task, metrics, images, replace(chosen, model=engine))):
            if "encoder" in metric.needs and metric.name not in own_models:
                metric.name = f"{metric.name}[{engine.backbone.name}]"
            built.setdefault(metric.name, metric)
    return list(built.values())

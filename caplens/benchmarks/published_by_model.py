"""What papers report of a metric with one model or another: `published_by_model.tsv` beside this file.

Values that a benchmark itself brings are those of metrics without a model, or with CLIP ViT-B/32.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_VIT_B_32 = r"hf:(.*/)?clip-vit-base-patch32|openclip:ViT-B-32(-quickgelu)?/openai"
_NAMES = {
    "CLIP ViT-B/16": r"hf:(.*/)?clip-vit-base-patch16|openclip:ViT-B-16(-quickgelu)?/openai",
    "CLIP ViT-L/14": r"hf:(.*/)?clip-vit-large-patch14|openclip:ViT-L-14(-quickgelu)?/openai",
    "OpenCLIP ViT-B/32": r"openclip:(hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K|ViT-B-32/laion2b_s34b_b79k)",
    "OpenCLIP ViT-L/14": r"openclip:(hf-hub:laion/CLIP-ViT-L-14-laion2B-s32B-b82K|ViT-L-14/laion2b_s32b_b82k)",
    "CLIP RN50": r"openclip:RN50(-quickgelu)?/openai",
    "CLIP RN101": r"openclip:RN101(-quickgelu)?/openai",
    "CLIP RN50x4": r"openclip:RN50x4(-quickgelu)?/openai",
}
"""As a paper calls a model -> its names here, without options. Others are called by their name on the hub."""
_ON_THE_HUB = r"(hf:|openclip:hf-hub:|mclip:|st:)"
_MODEL_IN_SIGNATURE = re.compile(r"\|model:(?P<name>.*?)(?P<options>,[^|]*)?@[0-9a-f]{8}(?:\||$)")
_GIVEN = "|given:"
"""In the signature of scores that were computed elsewhere."""
_TRAINED_BY_THE_PAPER = "pacs"
"""Metrics whose published values are those of a checkpoint of the paper's own."""

PublishedValues = Mapping[str, Mapping[str, float | None]]
"""Measure -> metric -> value."""


class ReportedValue(NamedTuple):
    """A row of the table for one benchmark, protocol and language."""

    source: str
    model: str
    metric: str
    measure: str
    value: float


@cache
def _table() -> dict[tuple[str, str, str], list[ReportedValue]]:
    """(benchmark, protocol, language) -> what is reported."""
    table: dict[tuple[str, str, str], list[ReportedValue]] = {}
    with files("caplens.benchmarks").joinpath("published_by_model.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            key = (row["benchmark"], row["protocol"], row["lang"])
            reported = ReportedValue(row["source"], row["model"], row["metric"], row["measure"], float(row["value"]))
            table.setdefault(key, []).append(reported)
    return table


def reported_values(benchmark: str, protocol: str, lang: str) -> list[ReportedValue]:
    """What papers report of a benchmark, with one model or another."""
    return list(_table().get((benchmark, protocol, lang), []))


def reported_languages(benchmark: str) -> list[str]:
    """The languages for which papers report values of a benchmark."""
    return sorted({lang for name, _, lang in _table() if name == benchmark})


class PublishedByModel(NamedTuple):
    """Published values of metrics with their models."""

    values: PublishedValues
    source: str
    same_model: list[str]
    """Metrics whose published values, if there are any, are of the model that they were computed with."""


def published_by_model(
    published: PublishedValues, source: str, signatures: Mapping[str, str], benchmark: str, protocol: str, lang: str
) -> PublishedByModel:
    """Published values, where metrics that were computed with a model of the table have that model's values."""
    values = {measure: dict(by_metric) for measure, by_metric in published.items()}
    sources, same = [source] if source else [], []
    rows = _table().get((benchmark, protocol, lang), [])
    for metric, signature in signatures.items():
        kind, match = metric.partition("[")[0], _MODEL_IN_SIGNATURE.search(signature)
        name = None if match is None else match["name"]
        reported, is_base = [row for row in rows if row.metric == kind and _is_of(row.model, name)], _is_base(name)
        if _GIVEN in signature:
            # A user's own file, whatever it is called.
            for by_metric in values.values():
                by_metric[metric] = None
            continue
        if not is_base and not reported:
            continue
        if _TRAINED_BY_THE_PAPER not in kind or match is None or match["options"] is not None:
            same.append(metric)
        sources += _take_over(values, metric, reported, values_of_others=not is_base)
    return PublishedByModel(values, "; ".join(dict.fromkeys(sources)), same)


def _is_base(name: str | None) -> bool:
    """Whether the values that a benchmark itself brings are of this model."""
    return name is None or re.fullmatch(_VIT_B_32, name) is not None


def _is_of(model: str, name: str | None) -> bool:
    """Whether a row's model is the one of this name; rows of metrics without a model name none."""
    if name is None or not model:
        return name is None and not model
    return re.fullmatch(_NAMES.get(model, _ON_THE_HUB + re.escape(model)), name) is not None


def _take_over(
    values: dict[str, dict[str, float | None]], metric: str, reported: Sequence[ReportedValue], *, values_of_others: bool
) -> list[str]:
    """Put what is reported into `values`, the first paper first; returns its sources."""
    kind, sources = metric.partition("[")[0], []
    if values_of_others:
        for by_metric in values.values():
            by_metric[metric] = None
    for row in reported:
        by_metric = values.setdefault(row.measure, {})
        if by_metric.get(metric) is None and (values_of_others or by_metric.get(kind) is None):
            by_metric[metric] = row.value
            sources.append(row.source if not row.model else f"{row.source} ({row.model})")
    return sources

"""What papers report of a metric with other models than CLIP ViT-B/32: `published_by_model.tsv` beside this file.

The columns after the first three are a benchmark, a protocol and a measure each.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_PAPER = "Sarto et al. 2023 (PAC-S), table"
_MODELS = {
    "CLIP ViT-B/16": r"hf:(.*/)?clip-vit-base-patch16|openclip:ViT-B-16(-quickgelu)?/openai",
    "CLIP ViT-L/14": r"hf:(.*/)?clip-vit-large-patch14|openclip:ViT-L-14(-quickgelu)?/openai",
    "OpenCLIP ViT-B/32": r"openclip:(hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K|ViT-B-32/laion2b_s34b_b79k)",
    "OpenCLIP ViT-L/14": r"openclip:(hf-hub:laion/CLIP-ViT-L-14-laion2B-s32B-b82K|ViT-L-14/laion2b_s32b_b82k)",
    "CLIP RN50": r"openclip:RN50(-quickgelu)?/openai",
    "CLIP RN101": r"openclip:RN101(-quickgelu)?/openai",
    "CLIP RN50x4": r"openclip:RN50x4(-quickgelu)?/openai",
}
"""As the paper calls a model -> its names here, without options."""
_MODEL_IN_SIGNATURE = re.compile(r"\|model:(.*?)(?:,[^|]*)?@[0-9a-f]{8}(?:\||$)")

PublishedValues = Mapping[str, Mapping[str, float | None]]
"""Measure -> metric -> value."""


@cache
def _table() -> dict[tuple[str, str, str, str], dict[str, tuple[str, float]]]:
    """(model, metric, benchmark, protocol) -> measure -> (table, value)."""
    values: dict[tuple[str, str, str, str], dict[str, tuple[str, float]]] = {}
    with files("caplens.benchmarks").joinpath("published_by_model.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            model, table, metric = row.pop("model"), row.pop("table"), row.pop("metric")
            for column, value in row.items():
                benchmark, protocol, measure = column.split(" ")
                if value:
                    values.setdefault((model, metric, benchmark, protocol), {})[measure] = (table, float(value))
    return values


def with_values_by_model(
    published: PublishedValues, source: str, signatures: Mapping[str, str], benchmark: str, protocol: str
) -> tuple[PublishedValues, str]:
    """Published values and their source, where metrics that were computed with a model of the table have that model's values."""
    values = {measure: dict(by_metric) for measure, by_metric in published.items()}
    sources = [source] if source else []
    for metric, model in _models(signatures):
        kind = metric.partition("[")[0]
        reported = _table().get((model, kind, benchmark, protocol), {})
        # A value of another model is none of this one.
        for measure in values.keys() | reported.keys():
            values.setdefault(measure, {})[metric] = reported[measure][1] if measure in reported else None
        sources += [f"{_PAPER} {table} ({model})" for table, _ in reported.values()]
    return values, "; ".join(dict.fromkeys(sources))


def _models(signatures: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Metrics whose model the table has, and how the paper calls it."""
    for metric, signature in signatures.items():
        match = _MODEL_IN_SIGNATURE.search(signature)
        for model, names in _MODELS.items():
            if match is not None and re.fullmatch(names, match[1]):
                yield metric, model

"""The metrics by name: those of caplens, those of other packages, and classes named by their path."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple, Unpack, cast

from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.function import CaptionFunction, FunctionMetric, SampleFunction
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.plugins import find_plugins, import_object, load_plugin

MetricChoice = str | Metric | type[Metric] | SampleFunction | CaptionFunction
"""A name, a `Metric` or its class, or a function; see `caplens.metric`."""
PLUGINS = "caplens.metrics"
"""The entry-point group in which other packages register metrics."""


class MetricEntry(NamedTuple):
    module: str
    class_name: str
    needs: str
    """As `caplens list metrics` shows it."""
    summary: str


METRICS = {
    **{
        f"bleu{n}": MetricEntry("bleu", f"Bleu{n}", "references", f"BLEU-{n} as the COCO evaluation computes it (0 to 1)")
        for n in (1, 2, 3, 4)
    },
    "rouge-l": MetricEntry("rouge", "RougeL", "references", "ROUGE-L as the COCO evaluation computes it (0 to 1)"),
    "cider": MetricEntry(
        "cider", "Cider", "references", "CIDEr-D as the COCO evaluation computes it: what papers report (0 to 10)"
    ),
    "cider-original": MetricEntry(
        "cider",
        "CiderOriginal",
        "references",
        "CIDEr by the paper's equations, without CIDEr-D's clipping and length penalty (0 to 10)",
    ),
    "length": MetricEntry("length", "Length", "caption", "tokens in the caption: the baseline any score should beat"),
    "clipscore": MetricEntry(
        "clipscore",
        "ClipScore",
        "image, model",
        "CLIPScore: w * max(cosine of caption and image, 0) (w is 2.5; 1 with caplens-mini)",
    ),
    "refclipscore": MetricEntry(
        "clipscore",
        "RefClipScore",
        "image, references, model",
        "the harmonic mean of CLIPScore and the highest cosine with a reference",
    ),
    "pacs": MetricEntry("pacs", "PacS", "image, PAC-S checkpoint", "PAC-S: w * max(cosine of caption and image, 0) (w is 2)"),
    "refpacs": MetricEntry(
        "pacs",
        "RefPacS",
        "image, references, PAC-S checkpoint",
        "the harmonic mean of PAC-S and the highest cosine with a reference",
    ),
    "mcs": MetricEntry(
        "mcs", "MultilingualClipScore", "image, model", "MCS: CLIPScore with a multilingual text encoder and no prompt"
    ),
    "emscore": MetricEntry(
        "emscore", "EmScore", "video, model", "EMScore: how near a caption is to a video, as a whole and word by frame"
    ),
    "refemscore": MetricEntry(
        "emscore", "RefEmScore", "video, references, model", "the mean of EMScore against the video and the nearest reference"
    ),
    "pacs-video": MetricEntry("emscore", "PacSVideo", "video, PAC-S checkpoint", "PAC-S for video: EMScore with its checkpoint"),
    "refpacs-video": MetricEntry(
        "emscore",
        "RefPacSVideo",
        "video, references, PAC-S checkpoint",
        "the mean of PAC-S against the video and the nearest reference",
    ),
    "mid": MetricEntry(
        "mid", "Mid", "image, references or --mid, model", "MID: the mutual information of caption and image, in nats"
    ),
    "clip+cider": MetricEntry("clip_cider", "ClipCider", "image, references, model", "the mean of CLIPScore and CIDEr-D"),
    "refclip+cider": MetricEntry(
        "clip_cider", "RefClipCider", "image, references, model", "the mean of RefCLIPScore and CIDEr-D"
    ),
    "mini-qe": MetricEntry(
        "mini_qe", "MiniQe", "source, model", "cosine of a translation and its source, by a multilingual model"
    ),
    "use-qe": MetricEntry("use_qe", "UseQe", "source", "cosine of a translation and its source, by USE-multilingual (extra use)"),
    "cometkiwi": MetricEntry("cometkiwi", "CometKiwi", "source, --qe-model", "COMETKiwi: quality of a translation, no reference"),
    "xcomet-qe": MetricEntry("cometkiwi", "XComet", "source, --qe-model", "XCOMET without a reference: its regression score"),
    "metricx23-qe": MetricEntry("metricx", "MetricX23", "source, --qe-model", "MetricX-23-QE: error of a translation, 0 to 25"),
    "metricx24-qe": MetricEntry("metricx", "MetricX24", "source, --qe-model", "MetricX-24-QE: error of a translation, 0 to 25"),
    "meteor": MetricEntry("meteor", "Meteor", "references, Java", "METEOR 1.5, English (0 to 1)"),
    "spice": MetricEntry("spice", "Spice", "references, Java", "SPICE 1.0, English (0 to 1)"),
}


def list_metrics() -> dict[str, tuple[str, str]]:
    """Name -> (requirements, summary) of all available metrics, those of other packages included."""
    entries = {name: (entry.needs, entry.summary) for name, entry in METRICS.items()}
    for name in find_plugins(PLUGINS):
        if name not in entries:
            plugin = _require_metric_class(load_plugin(PLUGINS, name), name)
            entries[name] = (
                ", ".join(sorted(plugin.needs - {"caption"})).replace("encoder", "model") or "caption",
                plugin.summary,
            )
    return entries


def metric_class(name: str) -> type[Metric]:
    """The class of a metric, by name in any common spelling (CIDEr, Bleu_4, ROUGE_L) or by path (`package.module:Class`)."""
    if ":" in name:
        return _require_metric_class(import_object(name), name)
    canonical = canonical_name(name)
    if canonical in METRICS:
        entry = METRICS[canonical]
        return _require_metric_class(getattr(import_module(f"caplens.metrics.{entry.module}"), entry.class_name), name)
    return _require_metric_class(load_plugin(PLUGINS, canonical), name)


def canonical_name(name: str) -> str:
    """The name as caplens writes it; an error if there is no such metric."""
    if ":" in name:
        return name
    by_spelling = {_fold_name(metric): metric for metric in METRICS} | {"rouge": "rouge-l"}
    if _fold_name(name) not in by_spelling:
        by_spelling = {_fold_name(metric): metric for metric in find_plugins(PLUGINS)} | by_spelling
    if _fold_name(name) not in by_spelling:
        near = get_close_matches(_fold_name(name), by_spelling, 1)
        hint = f" Did you mean {by_spelling[near[0]]!r}?" if near else ""
        raise InputError(
            f"unknown metric {name!r}; choose from: {', '.join(sorted(set(by_spelling.values()), key=_order))}.{hint}"
        )
    return by_spelling[_fold_name(name)]


def _order(name: str) -> int:
    return list(METRICS).index(name) if name in METRICS else len(METRICS)


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _require_metric_class(candidate: object, name: str) -> type[Metric]:
    if not isinstance(candidate, type) or not issubclass(candidate, Metric):
        raise InputError(f"{name!r} is not a metric: it must be a class derived from caplens.metrics.Metric.")
    return candidate


def get_metric(name: str, options: ScoringOptions | None = None, **keywords: Unpack[ScoringKeywords]) -> Metric:
    """The metric called `name`, built with the options that apply to it.

    Parameters
    ----------
    name
        As `caplens list metrics` shows it, or `package.module:name`.
    options, **keywords
        See `ScoringOptions`.

    Raises
    ------
    InputError
        If there is no such metric.

    Examples
    --------
    >>> get_metric("cider", tokenizer="13a").name
    'cider'
    """
    (metric,) = build_metrics([name], ScoringOptions.of(options, **keywords))
    return metric


def needs_encoder(name: str | Metric) -> bool:
    """Whether a metric needs an image-text encoder such as CLIP; False for names that do not exist."""
    if isinstance(name, Metric):
        return "encoder" in name.needs
    try:
        return "encoder" in metric_class(name).needs
    except InputError:
        return False


def _find_metric(entry: MetricChoice) -> Metric | type[Metric]:
    """What a name, a path (`package.module:name`) or an object stands for."""
    if isinstance(entry, str):
        if ":" not in entry:
            return metric_class(entry)
        entry = cast(MetricChoice, import_object(entry))
    if isinstance(entry, Metric) or (isinstance(entry, type) and issubclass(entry, Metric)):
        return entry
    if callable(entry) and not isinstance(entry, type):
        return FunctionMetric(entry)
    raise InputError(f"a metric is a name, a Metric or a function, not {entry!r}; references are passed with references=.")


def build_metrics(metrics: Sequence[MetricChoice], options: ScoringOptions) -> list[Metric]:
    """The metrics of a run, without duplicates. They share one engine and one table of document frequencies."""
    unique = list(dict.fromkeys(_find_metric(entry) for entry in dict.fromkeys(metrics)))
    if any(isinstance(entry, type) and "encoder" in entry.needs for entry in unique):
        options = replace(options, model=options.engine())
    if options.df is not None:
        options = replace(options, df=options.document_frequency())
    return [entry.from_options(options) if isinstance(entry, type) else entry for entry in unique]

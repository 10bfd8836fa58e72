"""The metrics by name."""

from importlib import import_module
from typing import NamedTuple

from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.document_frequency import DocumentFrequency


class Entry(NamedTuple):
    module: str
    class_name: str
    needs: str
    summary: str


METRICS = {
    **{
        f"bleu{n}": Entry("bleu", f"Bleu{n}", "references", f"BLEU-{n} as the COCO evaluation computes it (0 to 1)")
        for n in (1, 2, 3, 4)
    },
    "rouge-l": Entry("rouge", "RougeL", "references", "ROUGE-L as the COCO evaluation computes it (0 to 1)"),
    "cider": Entry("cider", "Cider", "references", "CIDEr-D as the COCO evaluation computes it: what papers report (0 to 10)"),
    "cider-original": Entry("cider", "CiderOriginal", "references", "CIDEr by the paper's equations, without clipping (0 to 10)"),
    "length": Entry("length", "Length", "caption", "tokens in the caption: the baseline any score should beat"),
    "meteor": Entry("meteor", "Meteor", "references, Java", "METEOR 1.5, English (0 to 1)"),
    "spice": Entry("spice", "Spice", "references, Java", "SPICE 1.0, English (0 to 1)"),
}
DEFAULT_METRICS = ("bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider")


def get_metric(
    name: str, tokenizer: str | None = None, lang: str | None = None, frequency: DocumentFrequency | None = None
) -> Metric:
    """The metric called `name`; options that it does not have are none of its business."""
    try:
        entry = METRICS[name]
    except KeyError:
        raise InputError(f"unknown metric {name!r}; choose from: {', '.join(METRICS)}.") from None
    make = getattr(import_module(f"caplens.metrics.{entry.module}"), entry.class_name)
    metric: Metric = make(tokenizer, lang, frequency) if entry.module == "cider" else make(tokenizer, lang)
    return metric

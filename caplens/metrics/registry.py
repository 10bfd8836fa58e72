"""The metrics by name."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from caplens.backbones.mini import DEFAULT
from caplens.embed import Engine
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.embedding import Prompt


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
    "clipscore": Entry(
        "clipscore",
        "ClipScore",
        "image, model",
        "CLIPScore: w times the cosine of caption and image (w is 2.5; 1 with caplens-mini)",
    ),
    "refclipscore": Entry(
        "clipscore", "RefClipScore", "image, references, model", "the harmonic mean of CLIPScore and the best reference's cosine"
    ),
    "pacs": Entry("pacs", "PacS", "image, PAC-S checkpoint", "PAC-S: w times the cosine of caption and image (w is 2)"),
    "refpacs": Entry(
        "pacs", "RefPacS", "image, references, PAC-S checkpoint", "the harmonic mean of PAC-S and the best reference's cosine"
    ),
    "mcs": Entry("mcs", "MultilingualClipScore", "image, model", "MCS: CLIPScore without its English prompt"),
    "clip+cider": Entry("clip_cider", "ClipCider", "image, references, model", "the mean of CLIPScore and CIDEr-D"),
    "meteor": Entry("meteor", "Meteor", "references, Java", "METEOR 1.5, English (0 to 1)"),
    "spice": Entry("spice", "Spice", "references, Java", "SPICE 1.0, English (0 to 1)"),
}


def looks_at_images(name: str) -> bool:
    try:
        return "image" in _class_of(METRICS[check_name(name)]).requires
    except InputError:
        return False


def _class_of(entry: Entry) -> Any:
    return getattr(import_module(f"caplens.metrics.{entry.module}"), entry.class_name)


DEFAULT_METRICS = ("bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider")


def check_name(name: str) -> str:
    """The name as we write it, from CIDEr, Bleu_4, ROUGE_L, …; an error if there is no such metric."""
    plain = {_plain(known): known for known in METRICS} | {"rouge": "rouge-l"}
    if _plain(name) not in plain:
        near = get_close_matches(_plain(name), plain, 1)
        meant = f" Did you mean {plain[near[0]]!r}?" if near else ""
        raise InputError(f"unknown metric {name!r}; choose from: {', '.join(METRICS)}.{meant}")
    return plain[_plain(name)]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def get_metric(
    name: str,
    tokenizer: str | None = None,
    lang: str | None = None,
    frequency: DocumentFrequency | None = None,
    engine: Engine | None = None,
    prompt: Prompt | None = None,
) -> Metric:
    """The metric called `name`; options that it does not have are none of its business."""
    name = check_name(name)
    entry = METRICS[name]
    make = _class_of(entry)
    metric: Metric
    if "image" in make.requires:
        if engine is None:
            raise InputError(f"{name} looks at images and needs an engine, such as caplens.embed.open_engine({DEFAULT!r}).")
        if name == "clip+cider":
            metric = make(
                get_metric("clipscore", engine=engine, prompt=prompt, lang=lang), get_metric("cider", tokenizer, lang, frequency)
            )
        else:
            metric = make(engine, prompt, lang)
    else:
        metric = make(tokenizer, lang, frequency) if entry.module == "cider" else make(tokenizer, lang)
    return metric

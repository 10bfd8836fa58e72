"""How papers write the names of metrics and their scores: in tables that are printed."""

import re
from typing import Literal, NamedTuple

_BLEU = re.compile(r"bleu([1-4])")
_NAMES = {
    "rouge-l": "ROUGE-L", "cider": "CIDEr", "cider-original": "CIDEr (original)", "meteor": "METEOR", "spice": "SPICE",
    "clipscore": "CLIPScore", "refclipscore": "RefCLIPScore", "pacs": "PAC-S", "refpacs": "RefPAC-S", "mcs": "MCS", "mid": "MID",
    "emscore": "EMScore", "refemscore": "RefEMScore", "pacs-video": "PAC-S (video)", "refpacs-video": "RefPAC-S (video)",
    "clip+cider": "CLIPScore + CIDEr", "refclip+cider": "RefCLIPScore + CIDEr", "length": "Length", "cometkiwi": "COMETKiwi",
    "xcomet-qe": "XCOMET", "metricx23-qe": "MetricX-23", "metricx24-qe": "MetricX-24", "polos": "Polos", "fleur": "FLEUR",
    "reffleur": "RefFLEUR", "expert": "EXPERT", "infometic": "InfoMetIC", "umic": "UMIC", "tiger": "TIGEr", "bert-s": "BERTScore",
}  # fmt: skip
_AS_THEY_ARE = frozenset({"length", "mid", "metricx23-qe", "metricx24-qe"})
"""Metrics that papers do not report times 100."""


_NO_QUALITY = frozenset({"length"})
_LOWER_IS_BETTER = frozenset({"metricx23-qe", "metricx24-qe"})


class PrintedMetric(NamedTuple):
    """The name of a metric in a table, what its scores are multiplied with, and which of them is the best."""

    name: str
    scale: float
    best: Literal["highest", "lowest", "none"] = "highest"


def printed_metric(metric: str) -> PrintedMetric:
    """How papers print a metric: `bleu4` is BLEU-4, times 100. Metrics that we do not know keep their names and scores.

    Examples
    --------
    >>> printed_metric("clipscore[b32]")
    PrintedMetric(name='CLIPScore (b32)', scale=100.0, best='highest')
    """
    kind, bracket, model = metric.partition("[")
    bleu = _BLEU.fullmatch(kind)
    name = f"BLEU-{bleu[1]}" if bleu else _NAMES.get(kind)
    if name is None:
        return PrintedMetric(metric, 1.0)
    best: Literal["highest", "lowest", "none"] = "highest"
    if kind in _LOWER_IS_BETTER or kind in _NO_QUALITY:
        best = "lowest" if kind in _LOWER_IS_BETTER else "none"
    return PrintedMetric(f"{name} ({model.rstrip(']')})" if bracket else name, 1.0 if kind in _AS_THEY_ARE else 100.0, best)

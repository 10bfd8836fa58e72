"""MCS (Kim et al. 2023, section 3.1): CLIPScore with a multilingual text encoder, and no prompt."""

from caplens.metrics.clipscore import ClipScore


class MultilingualClipScore(ClipScore):
    name = "mcs"
    prompt = {}

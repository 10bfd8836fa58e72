"""CLIPScore and RefCLIPScore (Hessel et al. 2021): how near a caption is to its image, and to the nearest of its references."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from caplens.arrays import Floats
from caplens.metrics.embedding import EmbeddingMetric
from caplens.metrics.prompts import CLIPSCORE_PROMPTS

W = 2.5


def clipscore(to_image: Floats, w: float = W) -> Floats:
    """w * max(cos(c, v), 0): equation 3 of the multilingual CLIPScore paper (Hessel et al., equation 1)."""
    return w * np.maximum(to_image, 0)


def refclipscore(to_image: Floats, to_reference: Floats, w: float = W) -> Floats:
    """H-Mean(CLIPScore(c, v), max(max_r cos(c, r), 0)): equation 4 of the same paper; 0 where both are 0."""
    a, b = clipscore(to_image, w), np.maximum(to_reference, 0)
    mean: Floats = np.divide(2 * a * b, a + b, out=np.zeros_like(a), where=a + b > 0)
    return mean


class ClipScore(EmbeddingMetric):
    name = "clipscore"
    prompt: ClassVar[Mapping[str, str]] = CLIPSCORE_PROMPTS
    weight = W

    def score_cosines(self, to_image: Floats, to_reference: Floats) -> Floats:
        return clipscore(to_image, self.weight)


class RefClipScore(EmbeddingMetric):
    name = "refclipscore"
    needs = frozenset({"caption", "image", "references", "encoder"})
    prompt = CLIPSCORE_PROMPTS
    weight = W

    def score_cosines(self, to_image: Floats, to_reference: Floats) -> Floats:
        return refclipscore(to_image, to_reference, self.weight)

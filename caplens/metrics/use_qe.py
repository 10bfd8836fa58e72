"""use-qe: the cosine of a source and its translation in USE-multilingual (Yang et al. 2020), for 15 languages (extra `use`)."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from caplens.backbones.mini_use import LANGUAGES, NAME, MiniUseBackbone
from caplens.backbones.registry import load_backbone
from caplens.metrics.options import ScoringOptions
from caplens.metrics.quality_estimation import Estimates, QualityEstimate, SourcePair


class UseQe(QualityEstimate):
    name = "use-qe"
    languages = frozenset(LANGUAGES)

    def __init__(self, lang: str | None = None) -> None:
        super().__init__(lang)
        backbone = load_backbone(NAME)
        assert isinstance(backbone, MiniUseBackbone)
        self._backbone = backbone

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.lang)

    def estimate(self, pairs: Sequence[SourcePair]) -> Estimates:
        texts = [text for pair in pairs for text in (pair.source, pair.translation)]
        vectors = self._backbone.sentence_vectors(texts).reshape(len(pairs), 2, -1)
        values = (vectors[:, 0].astype(np.float64) * vectors[:, 1].astype(np.float64)).sum(-1)
        cut = np.array([tokens.cut for tokens in self._backbone.tokenize(texts)]).reshape(len(pairs), 2)
        return Estimates(values, np.asarray(cut.any(1)))

    def signature_fields(self) -> dict[str, object]:
        return {"model": f"use-multilingual-v3@{self._backbone.fingerprint[:8]}"}

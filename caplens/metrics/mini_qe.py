"""mini-qe: the cosine of a source and its translation in the text tower of caplens-mini, or of another multilingual model."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from caplens.embed import Engine, Text
from caplens.metrics.options import ScoringOptions
from caplens.metrics.quality_estimation import Estimates, QualityEstimate, SourcePair


class MiniQe(QualityEstimate):
    name = "mini-qe"
    needs = frozenset({"caption", "source", "encoder"})

    def __init__(self, engine: Engine, lang: str | None = None) -> None:
        super().__init__(lang)
        self.engine = engine
        trained = getattr(engine.backbone, "trained", None)
        self.languages = frozenset(trained) if trained else None  # type: ignore[misc]

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.engine(), options.lang)

    def estimate(self, pairs: Sequence[SourcePair]) -> Estimates:
        reads_language = self.engine.backbone.reads_language
        by_pair = ((Text(pair.source), Text(pair.translation, "", pair.lang if reads_language else "")) for pair in pairs)
        texts = self.engine.texts([text for two in by_pair for text in two])
        vectors = texts.vectors[texts.index].astype(np.float64).reshape(len(pairs), 2, -1)
        truncated = np.asarray(texts.truncated.reshape(len(pairs), 2).any(1))
        return Estimates((vectors[:, 0] * vectors[:, 1]).sum(-1), truncated)

    def signature_fields(self) -> dict[str, object]:
        backbone = self.engine.backbone
        return {"model": f"{backbone.name}@{backbone.fingerprint[:8]}", "dtype": backbone.dtype}

"""SPICE 1.0 (Anderson et al. 2016) through its Java program, as the COCO caption evaluation runs it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from caplens.metrics.base import Floats
from caplens.metrics.java import JavaMetric, coco_scorer, java_failures

_ADVICE = (
    "On first use pycocoevalcap downloads the Stanford CoreNLP 3.6.0 models (about 400 MB) into its folder spice/lib; without a"
    " connection, copy stanford-corenlp-3.6.0.jar and stanford-corenlp-3.6.0-models.jar there. SPICE runs on Java 8 or 11."
)


class Spice(JavaMetric):
    name = "spice"
    version = "1.0"

    def load(self) -> Any:
        make = coco_scorer("SPICE", "spice.spice", "Spice")
        with java_failures("SPICE", _ADVICE):
            return make()

    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        with java_failures("SPICE", _ADVICE):
            corpus, scores = self.scorer.compute_score(
                dict(enumerate(references)), {row: [text] for row, text in enumerate(candidates)}
            )
        return float(corpus), np.array([entry["All"]["f"] for entry in scores])

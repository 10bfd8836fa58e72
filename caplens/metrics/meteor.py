"""METEOR 1.5 (Denkowski and Lavie 2014) through its Java program, as the COCO caption evaluation runs it.

Its corpus score is made from counts summed over all captions, which is not the mean of the captions' scores.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from caplens.metrics.base import Floats
from caplens.metrics.java import JavaMetric, coco_scorer, java_failures

_ADVICE = "Check that 'java -version' works and that 2 GB of memory are free."


class Meteor(JavaMetric):
    name = "meteor"
    version = "1.5"
    corpus_is_mean = False

    def load(self) -> Any:
        return coco_scorer("METEOR", "meteor.meteor", "Meteor")

    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        with java_failures("METEOR", _ADVICE):
            # The program's protocol separates texts by "|||".
            corpus, values = self.scorer().compute_score(
                {row: [text.replace("|||", " ") for text in texts] for row, texts in enumerate(references)},
                {row: [text] for row, text in enumerate(candidates)},
            )
        return float(corpus), np.array(values)

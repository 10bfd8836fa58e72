"""Caption length in tokens: the baseline that any score should beat."""

import numpy as np

from caplens.arrays import Floats
from caplens.metrics.lexical import LexicalMetric
from caplens.stats.means import mean_statistics
from caplens.text.corpus import TokenizedCorpus


class Length(LexicalMetric):
    name = "length"
    needs: frozenset[str] = frozenset({"caption"})

    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        values = corpus.candidates.lengths.astype(np.float64)
        return values, mean_statistics(values)

    def signature_fields(self) -> tuple[str, dict[str, object]]:
        return "length", {}

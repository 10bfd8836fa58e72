"""A metric: the share of a caption's words that are different."""

import numpy as np

from caplens.arrays import Floats
from caplens.metrics.lexical import LexicalMetric
from caplens.stats.means import mean_statistics
from caplens.text.corpus import TokenizedCorpus


class DistinctWords(LexicalMetric):
    name = "distinct"
    needs = frozenset({"caption"})
    summary = "the share of a caption's words that are different (0 to 1)"

    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        values = np.array([len(set(tokens)) / max(1, len(tokens)) for tokens in corpus.candidates.lists()])
        return values, mean_statistics(values)

    def signature_fields(self) -> tuple[str, dict[str, object]]:
        return "distinct", {}

"""ROUGE-L (Lin 2004) as the COCO caption evaluation computes it."""

from collections.abc import Sequence

import numpy as np

from caplens.arrays import Floats
from caplens.metrics.lexical import LexicalMetric
from caplens.progress import track
from caplens.stats.means import mean_statistics
from caplens.text.corpus import TokenizedCorpus

BETA = 1.2
_NO_TOKENS = [-1]
"""A text without tokens, as the COCO evaluation takes it: one empty token."""


def lcs_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the longest common subsequence, a whole row of the table at a time in the bits of one integer (Hyyrö 2004)."""
    where: dict[int, int] = {}
    for position, token in enumerate(first):
        where[token] = where.get(token, 0) | 1 << position
    full = (1 << len(first)) - 1
    row = full
    for token in second:
        matches = row & where.get(token, 0)
        row = ((row + matches) | (row - matches)) & full
    return len(first) - row.bit_count()


def rouge_l(candidate: Sequence[int], references: Sequence[Sequence[int]], beta: float = BETA) -> float:
    """F-measure of the best precision and the best recall over the references, which need not come from the same one."""
    common = [lcs_length(candidate, reference) for reference in references]
    precision = max(common) / len(candidate)
    recall = max(length / len(reference) for length, reference in zip(common, references, strict=True))
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


class RougeL(LexicalMetric):
    name = "rouge-l"

    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        candidates, references = corpus.candidates.lists(), corpus.references.lists()
        counts = track(corpus.reference_counts.tolist(), "rouge-l", len(corpus))
        values = np.array(
            [rouge_l(next(candidates) or _NO_TOKENS, [next(references) or _NO_TOKENS for _ in range(count)]) for count in counts]
        )
        return values, mean_statistics(values)

    def score_part(self, corpus: TokenizedCorpus, lang: str) -> tuple[Floats, Floats]:
        """A caption of which nothing is left scores 0, also where nothing is left of a reference: the COCO evaluation gives 1."""
        values, _ = self.score_corpus(corpus)
        values = np.where(corpus.candidates.lengths > 0, values, 0.0)
        return values, mean_statistics(values)

    def signature_fields(self) -> tuple[str, dict[str, object]]:
        return "rouge-l", {"beta": BETA}

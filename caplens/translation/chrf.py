"""chrF (Popović 2015) between texts, for choosing among translations; reported values come from sacrebleu."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from caplens.arrays import Floats

_ORDERS, _BETA = range(1, 7), 2.0


def chrf_matrix(texts: Sequence[str]) -> Floats:
    """The chrF of each text (row) against each other as reference (column), between 0 and 1.

    Precision and recall of character n-grams, without spaces, are averaged over the orders that both texts have.
    """
    size = len(texts)
    precisions, recalls, orders = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    joined = ["".join(text.split()) for text in texts]
    for order in _ORDERS:
        lengths = np.array([max(0, len(text) - order + 1) for text in joined], dtype=np.float64)
        both = np.outer(lengths > 0, lengths > 0)
        shared = _shared_grams(joined, order)
        precisions += np.divide(shared, lengths[:, None], out=np.zeros_like(shared), where=both)
        recalls += np.divide(shared, lengths[None, :], out=np.zeros_like(shared), where=both)
        orders += both
    precision, recall = (np.divide(total, orders, out=np.zeros_like(total), where=orders > 0) for total in (precisions, recalls))
    below = _BETA**2 * precision + recall
    return np.divide((1 + _BETA**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0)


def _shared_grams(texts: Sequence[str], order: int) -> Floats:
    """How many n-grams every two texts share; one that both have several times counts as often as the rarer.

    Each occurrence is a column of its own (the first "ab", the second "ab"), so that the smaller count is a product of matrices.
    """
    columns: dict[tuple[str, int], int] = {}
    rows, places = [], []
    for row, text in enumerate(texts):
        seen: Counter[str] = Counter()
        for start in range(len(text) - order + 1):
            gram = text[start : start + order]
            places.append(columns.setdefault((gram, seen[gram]), len(columns)))
            rows.append(row)
            seen[gram] += 1
    occurrences = csr_matrix((np.ones(len(rows)), (rows, places)), (len(texts), max(1, len(columns))))
    return np.asarray((occurrences @ occurrences.T).toarray())


def chrf(hypothesis: str, reference: str) -> float:
    """The chrF of one text against another."""
    return float(chrf_matrix([hypothesis, reference])[0, 1])

"""chrF (Popović 2015) of one text against another, for choosing among translations; reported values come from sacrebleu."""

from collections import Counter
from functools import lru_cache

_ORDERS, _BETA = range(1, 7), 2.0


@lru_cache(8192)
def _grams(text: str) -> tuple[Counter[str], ...]:
    """The character n-grams of each order, without spaces."""
    joined = "".join(text.split())
    return tuple(Counter(joined[start : start + n] for start in range(len(joined) - n + 1)) for n in _ORDERS)


def chrf(hypothesis: str, reference: str) -> float:
    """The F-score of character n-grams, between 0 and 1: precision and recall averaged over the orders that both texts have."""
    precisions, recalls = [], []
    for ours, theirs in zip(_grams(hypothesis), _grams(reference), strict=True):
        if ours and theirs:
            shared = (ours & theirs).total()
            precisions.append(shared / ours.total())
            recalls.append(shared / theirs.total())
    if not precisions:
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return (1 + _BETA**2) * precision * recall / (_BETA**2 * precision + recall) if precision + recall else 0.0

"""BLEU (Papineni et al. 2002) as the COCO caption evaluation computes it: closest reference length, no smoothing.

The COCO code keeps quotients finite with two small numbers instead of special cases; they are kept, because they are
what the score of a caption without a common 4-gram is made of.
"""

from typing import Any, ClassVar

import numpy as np

from caplens.arrays import Floats
from caplens.metrics.lexical import LexicalMetric
from caplens.progress import track
from caplens.text.corpus import TokenizedCorpus
from caplens.text.ngrams import NgramCounts, count_ngrams, run_starts
from caplens.text.tokenizer import TokenizerChoice

MAX_ORDER = 4
_TINY, _SMALL = 1e-15, 1e-9
_CHUNK_TOKENS = 1_000_000


def bleu_statistics(corpus: TokenizedCorpus) -> Floats:
    """For each entry: matched n-grams (orders 1 to 4), candidate n-grams (likewise), candidate length, reference length."""
    chunks = track(corpus.chunks(_CHUNK_TOKENS), "bleu", len(corpus), size=len)
    return np.concatenate([_chunk_statistics(chunk) for chunk in chunks])


def _chunk_statistics(chunk: TokenizedCorpus) -> Floats:
    lengths = chunk.candidates.lengths
    statistics = np.empty((len(chunk), 2 * MAX_ORDER + 2))
    for n in range(1, MAX_ORDER + 1):
        statistics[:, n - 1] = _matches(chunk, count_ngrams(chunk, n))
        statistics[:, MAX_ORDER + n - 1] = np.maximum(lengths - n + 1, 0)
    statistics[:, -2] = lengths
    statistics[:, -1] = _closest_reference_length(chunk)
    return statistics


def _matches(chunk: TokenizedCorpus, grams: NgramCounts) -> Floats:
    """The n-grams of each candidate that a reference has too, each at most as often as the reference that has it most."""
    candidates, references = grams.is_candidate, ~grams.is_candidate
    wanted = grams.pair[references]
    if not len(wanted):
        return np.zeros(len(chunk))
    first = run_starts(wanted)
    wanted, most = wanted[first], np.maximum.reduceat(grams.count[references], first)
    pair = grams.pair[candidates]
    place = np.minimum(np.searchsorted(wanted, pair), len(wanted) - 1)
    matched: Floats = np.where(wanted[place] == pair, np.minimum(grams.count[candidates], most[place]), 0.0)
    return np.bincount(grams.text[candidates], matched, len(chunk)).astype(np.float64)


def _closest_reference_length(chunk: TokenizedCorpus) -> Floats:
    """The reference length nearest to the candidate's, the shorter one of two that are equally near."""
    entry = chunk.entry_of_reference()
    lengths = chunk.references.lengths.astype(np.int64)
    order = np.lexsort((lengths, np.abs(lengths - chunk.candidates.lengths[entry]), entry))
    first = np.cumsum(chunk.reference_counts) - chunk.reference_counts
    closest: Floats = lengths[order[first]].astype(np.float64)
    return closest


def bleu(statistics: Floats, order: int) -> Floats:
    """BLEU of that order from (sums of) `bleu_statistics`, along the last axis."""
    correct, guess = statistics[..., :order], statistics[..., MAX_ORDER : MAX_ORDER + order]
    precision = np.prod((correct + _TINY) / (guess + _SMALL), axis=-1) ** (1 / order)
    ratio = (statistics[..., -2] + _TINY) / (statistics[..., -1] + _SMALL)
    score: Floats = precision * np.exp(np.minimum(0.0, 1 - 1 / ratio))
    return score


class _Bleu(LexicalMetric):
    order: ClassVar[int]

    def __init__(self, tokenizer: TokenizerChoice | None = None, lang: str | None = None) -> None:
        super().__init__(tokenizer, lang)
        self.pool = lambda sums: bleu(sums, self.order)

    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        statistics = corpus.cached("bleu", lambda: bleu_statistics(corpus))
        return bleu(statistics, self.order), statistics

    def signature_fields(self) -> tuple[str, dict[str, Any]]:
        return f"bleu{self.order}", {"len": "closest", "smooth": "none"}


class Bleu1(_Bleu):
    name, order = "bleu1", 1


class Bleu2(_Bleu):
    name, order = "bleu2", 2


class Bleu3(_Bleu):
    name, order = "bleu3", 3


class Bleu4(_Bleu):
    name, order = "bleu4", 4

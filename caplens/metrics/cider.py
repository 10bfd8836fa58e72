"""CIDEr and CIDEr-D (Vedantam et al. 2015): how much a caption agrees with what people say about the image.

A text is a vector of n-gram counts weighted by inverse document frequency, one vector an order; its score is ten times the
mean cosine to the references' vectors, over references and orders 1 to 4. CIDEr-D, which papers report, also caps
counts at the reference's and takes off for a different length. As in the COCO evaluation, a document is the union of
an entry's references, and length is counted in bigrams.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from caplens.metrics.base import Floats, mean_statistics
from caplens.metrics.document_frequency import DocumentFrequency, InverseFrequency, inverse_frequency
from caplens.metrics.lexical import LexicalMetric
from caplens.progress import track
from caplens.text.corpus import Entries, Ints
from caplens.text.ngrams import Keys, NgramCounts, count_ngrams

MAX_ORDER = 4
SIGMA = 6.0
_CHUNK_TOKENS = 250_000
_KEPT_TOKENS = 4_000_000


def cider(entries: Entries, frequency: DocumentFrequency | None = None, sigma: float | None = SIGMA, clip: bool = True) -> Floats:
    """CIDEr of each entry; CIDEr-D with `sigma` and `clip`, the original with neither (equations 1 and 2 of the paper)."""
    similarity = np.zeros(len(entries.references.lengths))
    with ThreadPoolExecutor() as pool:
        # A small corpus is counted once for each order, and its chunks in parallel. A large one is counted twice, so that
        # only one chunk has to be in memory.
        kept = list(entries.chunks(_CHUNK_TOKENS)) if len(entries.references.tokens) <= _KEPT_TOKENS else None
        for n in track(range(1, MAX_ORDER + 1), "cider", MAX_ORDER):
            counted: Iterable[tuple[Entries, NgramCounts]]
            if kept is None:
                counted = _Counted(entries, n)
            else:
                counted = list(zip(kept, pool.map(partial(count_ngrams, n=n), kept), strict=True))
            idf = _idf_of_corpus(counted, len(entries)) if frequency is None else frequency.idf(n, entries.vocabulary)
            cosines = partial(_cosines, idf=idf, clip=clip)
            similarity += np.concatenate(list(map(cosines, counted) if kept is None else pool.map(cosines, counted))) / MAX_ORDER
    if sigma is not None:
        similarity *= _length_penalty(entries, sigma)
    return 10 * np.bincount(entries.entry_of_reference(), similarity, len(entries)) / entries.reference_counts


@dataclass(frozen=True)
class _Counted:
    """Chunks with their n-grams, counted anew each time one iterates over them."""

    entries: Entries
    n: int

    def __iter__(self) -> Iterator[tuple[Entries, NgramCounts]]:
        return ((chunk, count_ngrams(chunk, self.n)) for chunk in self.entries.chunks(_CHUNK_TOKENS))


def _idf_of_corpus(counted: Iterable[tuple[Entries, NgramCounts]], documents: int) -> InverseFrequency:
    """log N - log max(1, df), with document frequencies counted over the entries themselves."""
    keys, counts = [], []
    for chunk, grams in counted:
        document = grams.pair[~grams.is_candidate]
        document = document[np.concatenate([[True], document[1:] != document[:-1]])] if len(document) else document
        keys.append(grams.keys)
        counts.append(np.bincount(document // len(chunk), minlength=len(grams.keys)))
    table, frequency = (keys[0], counts[0]) if len(keys) == 1 else _summed(np.concatenate(keys), np.concatenate(counts))
    return inverse_frequency(table, frequency, documents)


def _summed(keys: Keys, counts: Ints) -> tuple[Keys, Ints]:
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(counts[order], first)


def _cosines(counted: tuple[Entries, NgramCounts], idf: InverseFrequency, clip: bool) -> Floats:
    """The cosine of each reference to its candidate."""
    chunk, grams = counted
    size = len(chunk)
    weight = grams.count * idf(grams.keys)[grams.gram]
    norm = np.sqrt(np.bincount(grams.text, weight * weight, size + len(chunk.references.lengths)))
    candidates, references = np.flatnonzero(grams.is_candidate), np.flatnonzero(~grams.is_candidate)
    shared = np.zeros(len(chunk.references.lengths))
    if len(candidates) and len(references):
        known, wanted = grams.pair[candidates], grams.pair[references]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        both = known[place] == wanted
        mine, theirs = weight[candidates[place[both]]], weight[references[both]]
        product = (np.minimum(mine, theirs) if clip else mine) * theirs
        shared += np.bincount(grams.text[references[both]] - size, product, len(shared))
    scale = norm[:size][chunk.entry_of_reference()] * norm[size:]
    cosines: Floats = np.divide(shared, scale, out=np.zeros_like(shared), where=scale != 0)
    return cosines


def _length_penalty(entries: Entries, sigma: float) -> Floats:
    """A Gaussian of the difference in length; the COCO evaluation counts a text's bigrams for its length."""
    candidate = np.maximum(entries.candidates.lengths - 1, 0)[entries.entry_of_reference()]
    difference = (candidate - np.maximum(entries.references.lengths - 1, 0)).astype(np.float64)
    penalty: Floats = np.exp(-(difference**2) / (2 * sigma**2))
    return penalty


class Cider(LexicalMetric):
    """CIDEr-D, the score that papers call CIDEr."""

    name = "cider"
    _sigma: ClassVar[float | None] = SIGMA
    _clip: ClassVar[bool] = True

    def __init__(self, tokenizer: str | None = None, lang: str | None = None, frequency: DocumentFrequency | None = None) -> None:
        super().__init__(tokenizer, lang)
        self.frequency = frequency

    def score_entries(self, entries: Entries) -> tuple[Floats, Floats]:
        values = cider(entries, self.frequency, self._sigma, self._clip)
        return values, mean_statistics(values)

    def choices(self) -> tuple[str, dict[str, Any]]:
        df = "corpus" if self.frequency is None else self.frequency.label
        return "cider-d", {"df": df, "n": MAX_ORDER, "sigma": f"{SIGMA:g}"}


class CiderOriginal(Cider):
    """CIDEr of the paper's equations, without CIDEr-D's defences against gaming."""

    name = "cider-original"
    _sigma, _clip = None, False

    def choices(self) -> tuple[str, dict[str, Any]]:
        choices = super().choices()[1]
        del choices["sigma"]
        return "cider-original", choices

"""CIDEr and CIDEr-D (Vedantam et al. 2015): how much a caption agrees with what people say about the image.

A text is a vector of n-gram counts weighted by inverse document frequency, one vector an order; its score is ten times the
mean cosine to the references' vectors, over references and orders 1 to 4. CIDEr-D, which papers report, also caps
counts at the reference's and takes off for a different length. As in the COCO evaluation, a document is the union of
an entry's references, and length is counted in bigrams.
"""

from collections.abc import Iterator
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
_CHUNK_TOKENS = 1_000_000
_KEPT_CHUNKS = 16

def cider(
    entries: Entries, frequency: DocumentFrequency | None = None, sigma: float | None = SIGMA, clip: bool = True
) -> Floats:
    """CIDEr of each entry; CIDEr-D with `sigma` and `clip`, the original with neither (equations 1 and 2 of the paper)."""
    similarity = [np.zeros(len(entries)) for _ in range(MAX_ORDER)]
    penalty = None if sigma is None else _length_penalty(entries, sigma)
    for n in track(range(1, MAX_ORDER + 1), "cider", MAX_ORDER):
        counted = _Counted(entries, n)
        idf = _idf_of_corpus(counted, len(entries)) if frequency is None else frequency.idf(n, entries.vocabulary)
        start = first_reference = 0
        for chunk, grams in counted:
            per_reference = _cosines(chunk, grams, idf, clip)
            if penalty is not None:
                per_reference *= penalty[first_reference : first_reference + len(per_reference)]
            similarity[n - 1][start : start + len(chunk)] = np.bincount(
                chunk.entry_of_reference(), per_reference, len(chunk)
            )
            start += len(chunk)
            first_reference += len(per_reference)
    return 10 * np.mean(similarity, axis=0) / entries.reference_counts


class _Counted:
    """The entries in chunks with their n-grams counted: kept where there are few chunks, counted anew where there are many."""

    def __init__(self, entries: Entries, n: int) -> None:
        self._entries, self._n = entries, n
        self._kept: list[tuple[Entries, NgramCounts]] = []
        self._complete = False

    def __iter__(self) -> Iterator[tuple[Entries, NgramCounts]]:
        if self._complete:
            yield from self._kept
            return
        count = 0
        for count, chunk in enumerate(self._entries.chunks(_CHUNK_TOKENS), 1):
            grams = count_ngrams(chunk.candidates.followed_by(chunk.references), self._n, len(chunk.vocabulary))
            if count <= _KEPT_CHUNKS:
                self._kept.append((chunk, grams))
            else:
                self._kept.clear()
            yield chunk, grams
        self._complete = count <= _KEPT_CHUNKS


def _idf_of_corpus(counted: _Counted, documents: int) -> InverseFrequency:
    """log N - log max(1, df), with document frequencies counted over the entries themselves."""
    keys, counts = [], []
    for chunk, grams in counted:
        reference = slice(np.searchsorted(grams.text, len(chunk)), None)
        entry = chunk.entry_of_reference()[grams.text[reference] - len(chunk)]
        distinct = np.unique(grams.pairs(entry, reference))
        keys.append(grams.keys)
        counts.append(np.bincount(distinct % grams.stride, minlength=len(grams.keys)))
    table_keys, table_counts = _summed(np.concatenate(keys), np.concatenate(counts)) if len(keys) > 1 else (keys[0], counts[0])
    common = table_counts > 1
    return inverse_frequency(table_keys[common], table_counts[common], documents)


def _summed(keys: Keys, counts: Ints) -> tuple[Keys, Ints]:
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(counts[order], first)


def _cosines(chunk: Entries, grams: NgramCounts, idf: InverseFrequency, clip: bool) -> Floats:
    """The cosine of each reference to its candidate."""
    size = len(chunk)
    weight = grams.count * idf(grams.keys)[grams.gram]
    norm = np.sqrt(np.bincount(grams.text, weight * weight, size + len(chunk.references.lengths)))
    split = np.searchsorted(grams.text, size)
    candidates, references = slice(split), slice(split, None)
    entry = chunk.entry_of_reference()
    reference = grams.text[references] - size
    candidate_pair, candidate_weight = grams.pairs(grams.text[candidates], candidates), weight[candidates]
    pair, reference_weight = grams.pairs(entry[reference], references), weight[references]
    shared = np.zeros(len(chunk.references.lengths))
    if split:
        place = np.minimum(np.searchsorted(candidate_pair, pair), split - 1)
        both = candidate_pair[place] == pair
        mine, theirs = candidate_weight[place[both]], reference_weight[both]
        product = (np.minimum(mine, theirs) if clip else mine) * theirs
        shared = np.bincount(reference[both], product, len(shared))
    scale = norm[:size][entry] * norm[size:]
    return np.divide(shared, scale, out=np.zeros_like(shared), where=scale != 0)


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

    def __init__(
        self, tokenizer: str | None = None, lang: str | None = None, frequency: DocumentFrequency | None = None
    ) -> None:
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
        name, choices = super().choices()
        del choices["sigma"]
        return "cider-original", choices

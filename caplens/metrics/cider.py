"""CIDEr and CIDEr-D (Vedantam et al. 2015): how much a caption agrees with what people say about the image.

A text is a vector of n-gram counts weighted by inverse document frequency, one vector an order; its score is ten times the
mean cosine to the references' vectors, over references and orders 1 to 4. CIDEr-D, which papers report, also caps
counts at the reference's and takes off for a different length. As in the COCO evaluation, a document is the union of
an entry's references, and length is counted in bigrams.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np

from caplens.metrics.base import Collector, Floats, Scores, mean_statistics
from caplens.metrics.document_frequency import DocumentFrequency, FrequencyTable, InverseFrequency
from caplens.metrics.lexical import LexicalMetric, TokenCollector
from caplens.progress import track
from caplens.text.corpus import Entries, Ints
from caplens.text.ngrams import Keys, NgramCounts, count_ngrams, run_starts

ORDERS = range(1, 5)
SIGMA = 6.0
_CHUNK_TOKENS = 250_000
_KEPT_TOKENS = 4_000_000
_MOST_THREADS = 8

T = TypeVar("T")


def cider(entries: Entries, frequency: DocumentFrequency | None = None, sigma: float | None = SIGMA, clip: bool = True) -> Floats:
    """CIDEr of each entry; CIDEr-D with `sigma` and `clip`, the original with neither (equations 1 and 2 of the paper)."""
    # The chunks of a small corpus remember their n-grams; those of a large one are made and counted anew for each pass.
    kept = list(entries.chunks(_CHUNK_TOKENS)) if len(entries.references.tokens) <= _KEPT_TOKENS else None

    def chunks(description: str) -> Iterator[Entries]:
        return track(kept or entries.chunks(_CHUNK_TOKENS), f"cider: {description}", len(entries), size=len)

    if frequency is None:
        idf = _idf_of_corpus(chunks("document frequencies"), len(entries))
    else:
        idf = [frequency.idf(n, entries.vocabulary) for n in ORDERS]
    similarity = np.concatenate(list(_in_threads(partial(_similarity, idf=idf, clip=clip), chunks("similarities"))))
    if sigma is not None:
        similarity *= _length_penalty(entries, sigma)
    return 10 * np.bincount(entries.entry_of_reference(), similarity, len(entries)) / entries.reference_counts


def _in_threads(function: Callable[[Entries], T], chunks: Iterable[Entries]) -> Iterator[T]:
    """The results in order, as many chunks at a time as there are processors: numpy sorts without holding Python up."""
    workers = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(workers) as pool:
        remaining = iter(chunks)
        while window := list(islice(remaining, workers)):
            yield from pool.map(function, window)


def _grams(chunk: Entries, n: int) -> NgramCounts:
    return chunk.remember(f"{n}-grams", partial(count_ngrams, chunk, n))


def _idf_of_corpus(chunks: Iterable[Entries], documents: int) -> list[InverseFrequency]:
    """log N - log max(1, df) for each order, with document frequencies counted over the entries themselves."""
    tables = [FrequencyTable() for _ in ORDERS]
    for counts in _in_threads(_document_counts, chunks):
        for table, (keys, count) in zip(tables, counts, strict=True):
            table.add(keys, count)
    return [table.inverse(documents) for table in tables]


def _document_counts(chunk: Entries) -> list[tuple[Keys, Ints]]:
    """The n-grams of a chunk, and in how many of its entries' references each stands."""
    counts = []
    for n in ORDERS:
        grams = _grams(chunk, n)
        document = grams.pair[~grams.is_candidate]
        distinct = document[run_starts(document)]
        counts.append((grams.keys, np.bincount(distinct // len(chunk), minlength=len(grams.keys))))
    return counts


def _similarity(chunk: Entries, idf: list[InverseFrequency], clip: bool) -> Floats:
    """The mean cosine of each reference to its candidate, over the orders."""
    cosines: Floats = np.mean([_cosines(chunk, _grams(chunk, n), idf[n - 1], clip) for n in ORDERS], axis=0)
    return cosines


def _cosines(chunk: Entries, grams: NgramCounts, idf: InverseFrequency, clip: bool) -> Floats:
    """The cosine of each reference to its candidate."""
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

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, TokenCollector)
        for lang, tokenizer in collected.tokenizers.items():
            if self.frequency is not None:
                self.frequency.check(lang, tokenizer)
        scores = super().compute(collected, size)
        for part in collected.parts:
            if self.frequency is None and len(part.entries) == 1:
                scores.warnings.append(
                    f"{self.name}: there is one caption in {part.lang!r}, and document frequencies counted over one caption make"
                    " every score 0; take them from elsewhere with --df."
                )
        return scores

    def score_entries(self, entries: Entries) -> tuple[Floats, Floats]:
        values = cider(entries, self.frequency, self._sigma, self._clip)
        return values, mean_statistics(values)

    def choices(self) -> tuple[str, dict[str, Any]]:
        df = "corpus" if self.frequency is None else self.frequency.label
        return "cider-d", {"df": df, "sigma": f"{SIGMA:g}"}


class CiderOriginal(Cider):
    """CIDEr of the paper's equations, without CIDEr-D's defences against gaming."""

    name = "cider-original"
    _sigma, _clip = None, False

    def choices(self) -> tuple[str, dict[str, Any]]:
        choices = super().choices()[1]
        del choices["sigma"]
        return "cider-original", choices

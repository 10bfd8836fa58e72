"""CIDEr and CIDEr-D (Vedantam et al. 2015): how much a caption agrees with what people say about the image.

A text is a vector of n-gram counts weighted by inverse document frequency, one vector per order; its score is ten times the
mean cosine to the references' vectors, over references and orders 1 to 4. CIDEr-D, which papers report, also caps
counts at the reference's and takes off for a different length. As in the COCO evaluation, a document is the union of
an entry's references, and length is counted in bigrams.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from caplens.arrays import Floats, Ints
from caplens.errors import option
from caplens.metrics.base import Collector
from caplens.metrics.document_frequency import DocumentFrequency, FrequencyTable, InverseFrequency
from caplens.metrics.lexical import LexicalMetric, TokenCollector
from caplens.metrics.options import ScoringOptions
from caplens.progress import track
from caplens.results.scores import Scores
from caplens.stats.means import mean_statistics
from caplens.text.corpus import TokenizedCorpus
from caplens.text.ngrams import Keys, NgramCounts, count_ngrams, run_starts
from caplens.text.tokenizer import TokenizerChoice

ORDERS = range(1, 5)
SIGMA = 6.0
_CHUNK_TOKENS = 250_000
_KEPT_TOKENS = 4_000_000
_MOST_THREADS = 8

T = TypeVar("T")


def cider(
    corpus: TokenizedCorpus, frequency: DocumentFrequency | None = None, sigma: float | None = SIGMA, clip: bool = True
) -> Floats:
    """CIDEr of each entry; CIDEr-D with `sigma` and `clip`, the original with neither (equations 1 and 2 of the paper)."""
    # The chunks of a small corpus cache their n-grams; those of a large one are counted again for each pass.
    kept = list(corpus.chunks(_CHUNK_TOKENS)) if len(corpus.references.tokens) <= _KEPT_TOKENS else None

    def chunks(description: str) -> Iterator[TokenizedCorpus]:
        return track(kept or corpus.chunks(_CHUNK_TOKENS), f"cider: {description}", len(corpus), size=len)

    if frequency is None:
        idf = _idf_of_corpus(chunks("document frequencies"), len(corpus))
    else:
        idf = [frequency.idf(n, corpus.vocabulary) for n in ORDERS]
    similarity = np.concatenate(list(_in_threads(partial(_similarity, idf=idf, clip=clip), chunks("similarities"))))
    if sigma is not None:
        similarity *= _length_penalty(corpus, sigma)
    return 10 * np.bincount(corpus.entry_of_reference(), similarity, len(corpus)) / corpus.reference_counts


def _in_threads(function: Callable[[TokenizedCorpus], T], chunks: Iterable[TokenizedCorpus]) -> Iterator[T]:
    """The results in order, as many chunks at a time as there are processors: numpy sorts without holding Python up."""
    workers = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(workers) as pool:
        remaining = iter(chunks)
        while window := list(islice(remaining, workers)):
            yield from pool.map(function, window)


def _grams(chunk: TokenizedCorpus, n: int) -> NgramCounts:
    return chunk.cached(f"{n}-grams", partial(count_ngrams, chunk, n))


def _idf_of_corpus(chunks: Iterable[TokenizedCorpus], documents: int) -> list[InverseFrequency]:
    """log N - log max(1, df) for each order, with document frequencies counted over the corpus themselves."""
    tables = [FrequencyTable() for _ in ORDERS]
    for counts in _in_threads(_document_counts, chunks):
        for table, (keys, count) in zip(tables, counts, strict=True):
            table.add(keys, count)
    return [table.inverse(documents) for table in tables]


def document_counts(corpus: TokenizedCorpus) -> Iterator[list[tuple[Keys, Ints]]]:
    """The n-grams of each order in a chunk of the corpus, and the number of entries in whose references each occurs."""
    yield from _in_threads(_document_counts, corpus.chunks(_CHUNK_TOKENS))


def _document_counts(chunk: TokenizedCorpus) -> list[tuple[Keys, Ints]]:
    """The n-grams of a chunk, and in how many of its corpus' references each stands."""
    counts = []
    for n in ORDERS:
        grams = _grams(chunk, n)
        document = grams.pair[~grams.is_candidate]
        distinct = document[run_starts(document)]
        counts.append((grams.keys, np.bincount(distinct // len(chunk), minlength=len(grams.keys))))
    return counts


def _similarity(chunk: TokenizedCorpus, idf: list[InverseFrequency], clip: bool) -> Floats:
    """The mean cosine of each reference to its candidate, over the orders."""
    cosines: Floats = np.mean([_cosines(chunk, _grams(chunk, n), idf[n - 1], clip) for n in ORDERS], axis=0)
    return cosines


def _cosines(chunk: TokenizedCorpus, grams: NgramCounts, idf: InverseFrequency, clip: bool) -> Floats:
    """The cosine of each reference to its candidate."""
    size = len(chunk)
    weight = grams.count * idf(grams.keys)[grams.gram]
    norm = np.sqrt(np.bincount(grams.text, weight * weight, size + len(chunk.references.lengths)))
    candidates, references = np.flatnonzero(grams.is_candidate), np.flatnonzero(~grams.is_candidate)
    shared = np.zeros(len(chunk.references.lengths))
    if len(candidates) and len(references):
        candidate_pairs, reference_pairs = grams.pair[candidates], grams.pair[references]
        place = np.minimum(np.searchsorted(candidate_pairs, reference_pairs), len(candidate_pairs) - 1)
        both = candidate_pairs[place] == reference_pairs
        candidate_weights, reference_weights = weight[candidates[place[both]]], weight[references[both]]
        product = (np.minimum(candidate_weights, reference_weights) if clip else candidate_weights) * reference_weights
        shared += np.bincount(grams.text[references[both]] - size, product, len(shared))
    scale = norm[:size][chunk.entry_of_reference()] * norm[size:]
    cosines: Floats = np.divide(shared, scale, out=np.zeros_like(shared), where=scale != 0)
    return cosines


def _length_penalty(corpus: TokenizedCorpus, sigma: float) -> Floats:
    """A Gaussian of the difference in length; the COCO evaluation counts a text's bigrams for its length."""
    candidate = np.maximum(corpus.candidates.lengths - 1, 0)[corpus.entry_of_reference()]
    difference = (candidate - np.maximum(corpus.references.lengths - 1, 0)).astype(np.float64)
    penalty: Floats = np.exp(-(difference**2) / (2 * sigma**2))
    return penalty


def pools_languages(metric: str) -> bool:
    """Whether a metric of this name has one score over several languages: a mean over tokens of different kinds says nothing."""
    return not metric.startswith(Cider.name)


class Cider(LexicalMetric):
    """CIDEr-D, the score that papers call CIDEr."""

    name = "cider"
    _sigma: ClassVar[float | None] = SIGMA
    _clip: ClassVar[bool] = True

    def __init__(
        self, tokenizer: TokenizerChoice | None = None, lang: str | None = None, frequency: DocumentFrequency | None = None
    ) -> None:
        super().__init__(tokenizer, lang)
        self.frequency = frequency

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.tokenizer, options.lang, options.document_frequency())

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, TokenCollector)
        for lang, tokenizer in collector.tokenizers.items():
            if self.frequency is not None:
                self.frequency.check(lang, tokenizer)
        scores = super().compute(collected, size)
        for part in collector.parts:
            if self.frequency is None and len(part.corpus) == 1:
                scores.warnings.append(
                    f"{self.name}: there is one caption in {part.lang!r}, and document frequencies counted over one caption make"
                    f" every score 0; take them from another file with {option('df')}."
                )
        return scores

    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        return self._scores(corpus, self.frequency)

    def score_part(self, corpus: TokenizedCorpus, lang: str) -> tuple[Floats, Floats]:
        return self._scores(corpus, None if self.frequency is None else self.frequency.of_language(lang))

    def _scores(self, corpus: TokenizedCorpus, frequency: DocumentFrequency | None) -> tuple[Floats, Floats]:
        values = cider(corpus, frequency, self._sigma, self._clip)
        return values, mean_statistics(values)

    def signature_fields(self) -> tuple[str, dict[str, Any]]:
        df = "corpus" if self.frequency is None else self.frequency.label
        return "cider-d", {"df": df, "sigma": f"{SIGMA:g}"}


class CiderOriginal(Cider):
    """CIDEr of the paper's equations, without CIDEr-D's defences against gaming."""

    name = "cider-original"
    _sigma, _clip = None, False

    def signature_fields(self) -> tuple[str, dict[str, Any]]:
        fields = super().signature_fields()[1]
        del fields["sigma"]
        return "cider-original", fields

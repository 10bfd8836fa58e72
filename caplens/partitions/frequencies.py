"""Document frequencies of a corpus in partitions, for CIDEr: counted in each, added up, and looked up by hashes of words.

Token ids differ from partition to partition, so that an n-gram is known by a hash of its words.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Ints
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import batched
from caplens.metrics.cider import ORDERS, document_counts
from caplens.metrics.document_frequency import DocumentFrequency, FrequencyTable, InverseFrequency
from caplens.metrics.lexical import TokenCollector
from caplens.partitions.folders import StorageFolder
from caplens.text.ngrams import Keys
from caplens.text.tokenizer import TokenizerChoice
from caplens.text.vocabulary import Vocabulary

FOLDER = "frequencies"
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_NEEDS = frozenset({"caption", "references"})


class LanguageCounts(NamedTuple):
    """How many captions of one language there are, and in the references of how many each n-gram occurs."""

    documents: int
    keys: Keys
    """Hashes of n-grams of all orders, ascending."""
    counts: Ints


def count_documents(samples: Iterable[Sample], tokenizer: TokenizerChoice | None, lang: str | None) -> dict[str, LanguageCounts]:
    """Language -> the counts of captions that can be scored."""
    collector, size = TokenCollector(tokenizer, lang, _NEEDS), 0
    for batch in batched(samples):
        collector.feed(size, batch)
        size += len(batch)
    counted = {}
    for part in collector.parts:
        table = FrequencyTable()
        hashes = _word_hashes(part.corpus.vocabulary)
        for chunk_counts in document_counts(part.corpus):
            for n, (keys, counts) in zip(ORDERS, chunk_counts, strict=True):
                table.add(_ngram_hashes(keys, n, hashes), counts)
        counted[part.lang] = LanguageCounts(len(part.corpus), *table.columns())
    return counted


def add_counts(parts: Iterable[Mapping[str, LanguageCounts]]) -> dict[str, LanguageCounts]:
    """The counts of all partitions together. N-grams of one document weigh as those of none, and are left out."""
    tables: dict[str, FrequencyTable] = {}
    documents: dict[str, int] = {}
    for part in parts:
        for lang, counted in part.items():
            tables.setdefault(lang, FrequencyTable()).add(counted.keys, counted.counts)
            documents[lang] = documents.get(lang, 0) + counted.documents
    total = {}
    for lang, table in tables.items():
        keys, counts = table.columns()
        common = counts > 1
        total[lang] = LanguageCounts(documents[lang], keys[common], counts[common])
    return total


def to_bytes(counted: Mapping[str, LanguageCounts]) -> bytes:
    """The counts as a file of numpy's."""
    arrays: dict[str, Any] = {}
    for lang, of_language in counted.items():
        columns = {"documents": np.array([of_language.documents]), "keys": of_language.keys, "counts": of_language.counts}
        arrays |= {f"{lang}/{name}": column for name, column in columns.items()}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def from_bytes(content: bytes) -> dict[str, LanguageCounts]:
    with np.load(io.BytesIO(content)) as arrays:
        langs = sorted({name.partition("/")[0] for name in arrays.files})
        return {
            lang: LanguageCounts(int(arrays[f"{lang}/documents"][0]), arrays[f"{lang}/keys"], arrays[f"{lang}/counts"])
            for lang in langs
        }


class CorpusFrequency(DocumentFrequency):
    """The document frequencies of all partitions, in place of those of the captions being scored."""

    def __init__(self, counted: Mapping[str, LanguageCounts]) -> None:
        self.label = "corpus"
        self._languages = {lang: _LanguageFrequency(counts) for lang, counts in counted.items()}

    def check(self, lang: str, tokenizer: str) -> None:
        """They were counted with the tokenizers of the job."""

    def of_language(self, lang: str) -> DocumentFrequency:
        return self._languages[lang]


class _LanguageFrequency(DocumentFrequency):
    def __init__(self, counted: LanguageCounts) -> None:
        self.documents = counted.documents
        table = FrequencyTable()
        table.add(counted.keys, counted.counts)
        self._weight = table.inverse(counted.documents)

    def idf(self, n: int, vocabulary: Vocabulary) -> InverseFrequency:
        hashes = _word_hashes(vocabulary)
        return lambda keys: self._weight(_ngram_hashes(keys, n, hashes))


@lru_cache(1)
def load_frequency(place: str, name: str, digest: str) -> CorpusFrequency:
    """What a job counted; kept by the process that scores its partitions."""
    content = StorageFolder(place).read(FOLDER, name)
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{place}/{FOLDER}/{name}: this file is missing or damaged. Start the job again.")
    return CorpusFrequency(from_bytes(content))


def _word_hashes(vocabulary: Vocabulary) -> Keys:
    digests = (hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in vocabulary)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _ngram_hashes(keys: Keys, n: int, word_hashes: Keys) -> Keys:
    """The hash of each n-gram from its key, whose digits are token ids."""
    size = len(word_hashes)
    if size**n > 2**64:
        raise InputError(f"a partition has {size:,} different words, more than 65,536. Write smaller files or groups of rows.")
    base, rest = np.uint64(max(size, 1)), keys.copy()
    hashes = np.full(len(keys), np.uint64(n), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for _ in range(n):
            # The last word comes first, for all partitions alike.
            hashes = (hashes ^ (hashes >> np.uint64(29))) * _FACTOR + word_hashes[(rest % base).astype(np.int64)]
            rest //= base
        return (hashes ^ (hashes >> np.uint64(31))) * _FACTOR

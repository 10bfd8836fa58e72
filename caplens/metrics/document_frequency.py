"""Document frequencies for CIDEr that come from other captions than those being scored, such as COCO's."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from os import PathLike

import numpy as np

from caplens.arrays import Floats, Ints
from caplens.data.files import Source, on_disk
from caplens.data.formats.json_document import read_document, to_json
from caplens.data.languages import base_language
from caplens.data.references import read_references
from caplens.data.replacing import replacing
from caplens.errors import InputError, option
from caplens.progress import track
from caplens.text import Tokenizer
from caplens.text.ngrams import Keys, ngram_keys, run_starts
from caplens.text.tokenizer import TokenizerChoice, tokenizer_for
from caplens.text.vocabulary import Vocabulary

_MAX_ORDER = 4
_SEPARATOR = " "
_PICKLES = (b"\x80", b"(dp", b"(lp", b"ccollections\n", b"cnumpy")

InverseFrequency = Callable[[Keys], Floats]


class FrequencyTable:
    """The number of documents that each key occurs in, added up piece by piece.

    Pieces wait until they are as large as the table, so that a table of any size is merged few times and the memory
    needed is in proportion to the distinct keys.
    """

    _LEAST_MERGE = 2_000_000

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Keys, Ints]] = []
        self._size = 0

    def add(self, keys: Keys, counts: Ints) -> None:
        self._waiting.append((keys, counts))
        self._size += len(keys)
        if self._size > max(len(self._keys), self._LEAST_MERGE):
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        # The keys of each piece mostly come in order, and a stable sort makes use of that.
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = run_starts(keys)
        self._keys, self._counts = keys[first], np.add.reduceat(counts[order], first) if len(keys) else counts
        self._waiting, self._size = [], 0

    def columns(self) -> tuple[Keys, Ints]:
        """All keys, ascending, and their counts."""
        self._merge()
        return self._keys, self._counts

    def inverse(self, documents: int) -> InverseFrequency:
        """A function from keys to log N - log max(1, df), for N documents."""
        self._merge()
        log_documents = np.log(float(documents))
        # A key in one document or none weighs log N, so that most need not be looked up.
        common = self._counts > 1
        common_keys, log_counts = self._keys[common], np.log(self._counts[common].astype(np.float64))

        def idf(keys: Keys) -> Floats:
            if not len(common_keys):
                return np.full(len(keys), log_documents)
            place = np.minimum(np.searchsorted(common_keys, keys), len(common_keys) - 1)
            weights: Floats = log_documents - np.where(common_keys[place] == keys, log_counts[place], 0.0)
            return weights

        return idf


class DocumentFrequency:
    """The number of sets of references of one language, of `documents`, that each n-gram (tokens joined by spaces) occurs in."""

    def __init__(self, documents: int, counts: dict[str, int], tokenizer: str, lang: str) -> None:
        self.documents, self.counts, self.tokenizer, self.lang = documents, counts, tokenizer, lang
        digest = hashlib.sha256(json.dumps([documents, sorted(counts.items())]).encode()).hexdigest()
        self.label = f"{documents}@{digest[:8]}"

    @classmethod
    def count(cls, references: Iterable[Sequence[str]], tokenizer: Tokenizer) -> "DocumentFrequency":
        counts: Counter[str] = Counter()
        documents = 0
        for texts in references:
            documents += 1
            counts.update(list(dict.fromkeys(gram for text in texts for gram in _grams(tokenizer(text)))))
        return cls(documents, dict(counts), tokenizer.name, tokenizer.lang)

    @classmethod
    def load(
        cls, path: str | PathLike[str], tokenizer: TokenizerChoice | None = None, lang: str | None = None
    ) -> "DocumentFrequency":
        """From a file that `save` wrote, or counted from any file of references.

        Those of one language are counted: the one that all rows name, or `lang`, which rows that name none are in.
        """
        path = on_disk(path)
        with Source(path) as source:
            start = source.read(64)
            if start.startswith(_PICKLES):
                raise InputError(
                    f"{path}: this is a Python pickle, which can run code when it is opened, so caplens does not read it."
                    " Pass the reference captions that it was counted from instead (for COCO, captions_val2014.json)."
                )
        if start.lstrip().startswith(b'{"caplens_document_frequency"'):
            return cls._read(path)
        references = read_references(path)
        languages = {tag for _, tag, _ in references if tag is not None}
        if len(languages) > 1 and lang is None:
            raise InputError(
                f"{path}: the references are in several languages ({', '.join(sorted(languages))}). Choose one with"
                f" {option('lang')}."
            )
        lang = base_language(lang) if lang else next(iter(languages), "en")
        by_id: dict[str, list[str]] = {}
        for identifier, tag, texts in references:
            if tag in (None, lang):
                by_id.setdefault(identifier, []).extend(texts)
        if not by_id:
            raise InputError(f"{path}: there are no references in {lang!r}.")
        chosen = list(by_id.values())
        return cls.count(track(chosen, "document frequencies", len(chosen)), tokenizer_for(lang, tokenizer))

    @classmethod
    def _read(cls, path: str | PathLike[str]) -> "DocumentFrequency":
        with Source(path) as source:
            try:
                document = read_document(source)
                documents, counts = int(document["documents"]), dict(document["counts"])
                if not all(isinstance(count, int) and 0 < count <= documents for count in counts.values()):
                    raise ValueError("a count is not between 1 and the number of documents")
                return cls(documents, counts, str(document["tokenizer"]), str(document["lang"]))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise InputError(
                    f"{path}: not a document-frequency file ({error!r}). Make it again with 'caplens count-df'."
                ) from None

    def check(self, lang: str, tokenizer: str) -> None:
        """Raise an error if captions are in another language or were tokenized otherwise."""
        if (lang, tokenizer) != (self.lang, self.tokenizer):
            raise InputError(
                f"the document frequencies are of {self.lang!r} by the tokenizer {self.tokenizer!r}, but captions are in {lang!r}"
                f" by {tokenizer!r}. Count them with 'caplens count-df --lang {lang} --tokenizer {tokenizer}', and score one"
                " language at a time."
            )

    def of_language(self, lang: str) -> "DocumentFrequency":
        """The frequencies for captions in a language that `check` let pass."""
        return self

    def save(self, path: str | PathLike[str]) -> None:
        document = {
            "caplens_document_frequency": 1,
            "documents": self.documents,
            "tokenizer": self.tokenizer,
            "lang": self.lang,
            "counts": self.counts,
        }
        with replacing(path) as target:
            target.write_text(to_json(document) + "\n", encoding="utf-8")

    def idf(self, n: int, vocabulary: Vocabulary) -> InverseFrequency:
        """log N - log max(1, df) for the n-grams of a vocabulary; an n-gram with a word outside it is never looked up."""
        numbers: list[int] = []
        counts: list[int] = []
        for gram, count in self.counts.items():
            words = gram.split(_SEPARATOR)
            if len(words) == n and all(word in vocabulary for word in words):
                numbers.extend(vocabulary[word] for word in words)
                counts.append(count)
        starts = np.arange(0, len(numbers), n)
        keys = ngram_keys(np.array(numbers, dtype=np.int32), starts, n, len(vocabulary))
        table = FrequencyTable()
        table.add(keys, np.array(counts, dtype=np.int64))
        return table.inverse(self.documents)


def _grams(tokens: Sequence[str]) -> Iterable[str]:
    for n in range(1, _MAX_ORDER + 1):
        for start in range(len(tokens) - n + 1):
            yield _SEPARATOR.join(tokens[start : start + n])

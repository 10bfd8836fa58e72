"""Tokenized captions as arrays of token ids, the input of every lexical metric.

Texts are converted to token ids batch by batch and are not stored, so that a million captions fit in memory. An entry of a corpus
is a candidate with its references.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Ints
from caplens.text.tokenizer import Tokenizer
from caplens.text.vocabulary import Vocabulary

T = TypeVar("T")


@dataclass(frozen=True)
class Ragged:
    """Token lists of different lengths, concatenated into one array."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]

    def slice(self, start: int, stop: int, offsets: Ints) -> "Ragged":
        """The lists from `start` to `stop`; list i begins at `offsets[i]`."""
        return Ragged(self.tokens[offsets[start] : offsets[stop]], self.lengths[start:stop])

    def lists(self) -> Iterator[list[int]]:
        start = 0
        for length in self.lengths.tolist():
            yield self.tokens[start : start + length].tolist()
            start += length

    def concatenated(self, other: "Ragged") -> "Ragged":
        return Ragged(np.concatenate([self.tokens, other.tokens]), np.concatenate([self.lengths, other.lengths]))


@dataclass(frozen=True)
class TokenizedCorpus:
    """Candidates with their references: candidate i has `reference_counts[i]` consecutive texts of `references`."""

    candidates: Ragged
    references: Ragged
    reference_counts: NDArray[np.int32]
    vocabulary: Vocabulary
    _cache: dict[str, Any] = field(default_factory=dict)

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once for each key and shared by all metrics."""
        if key not in self._cache:
            self._cache[key] = compute()
        value: T = self._cache[key]
        return value

    def __len__(self) -> int:
        return len(self.candidates.lengths)

    def chunks(self, tokens: int) -> Iterator["TokenizedCorpus"]:
        """The corpus in chunks of about `tokens` tokens, to limit peak memory."""
        candidate_offsets = _offsets(self.candidates.lengths)
        reference_offsets = _offsets(self.references.lengths)
        first_reference = _offsets(self.reference_counts)
        tokens_before = candidate_offsets + reference_offsets[first_reference]
        start = 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(tokens_before, tokens_before[start] + tokens)))
            stop = min(stop, len(self))
            yield TokenizedCorpus(
                self.candidates.slice(start, stop, candidate_offsets),
                self.references.slice(int(first_reference[start]), int(first_reference[stop]), reference_offsets),
                self.reference_counts[start:stop],
                self.vocabulary,
            )
            start = stop

    def entry_of_reference(self) -> Ints:
        """The index of the entry that each reference belongs to."""
        return np.repeat(np.arange(len(self)), self.reference_counts)

    def strings(self) -> Iterator[tuple[str, list[str]]]:
        """Each candidate and its references, with tokens joined by spaces."""
        words = list(self.vocabulary)
        candidates, references = (
            (" ".join(words[token] for token in text) for text in texts.lists()) for texts in (self.candidates, self.references)
        )
        for count in self.reference_counts.tolist():
            yield next(candidates), [next(references) for _ in range(count)]


class CorpusBuilder:
    """Tokenizes captions batch by batch into a `TokenizedCorpus`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._vocabulary = Vocabulary()
        self._candidates, self._candidate_lengths = array("i"), array("i")
        self._references, self._reference_lengths = array("i"), array("i")
        self._reference_counts = array("i")

    def add(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        self._append(candidates, self._candidates, self._candidate_lengths)
        self._append([text for texts in references for text in texts], self._references, self._reference_lengths)
        self._reference_counts.extend(map(len, references))

    @property
    def without_tokens(self) -> int:
        """How many candidates have no tokens."""
        return self._candidate_lengths.count(0)

    def _append(self, texts: Sequence[str], tokens: "array[int]", lengths: "array[int]") -> None:
        token_ids, token_counts = self.tokenizer.token_ids(texts, self._vocabulary)
        tokens.frombytes(token_ids.tobytes())
        lengths.frombytes(token_counts.tobytes())

    def build(self) -> TokenizedCorpus:
        return TokenizedCorpus(
            Ragged(_as_array(self._candidates), _as_array(self._candidate_lengths)),
            Ragged(_as_array(self._references), _as_array(self._reference_lengths)),
            _as_array(self._reference_counts),
            self._vocabulary,
        )


def _as_array(values: "array[int]") -> NDArray[np.int32]:
    return np.frombuffer(values, dtype=np.int32) if values else np.empty(0, dtype=np.int32)


def _offsets(lengths: NDArray[np.int32]) -> Ints:
    """Where each list begins, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets

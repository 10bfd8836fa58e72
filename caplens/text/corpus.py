"""Tokenised captions as arrays of integers: what every lexical metric works on.

Texts are turned into token numbers as they arrive and are not kept, so that a million captions fit in memory.
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
    """Several token lists laid end to end."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]

    def slice(self, start: int, stop: int, offsets: Ints) -> "Ragged":
        return Ragged(self.tokens[offsets[start] : offsets[stop]], self.lengths[start:stop])

    def lists(self) -> Iterator[list[int]]:
        start = 0
        for length in self.lengths.tolist():
            yield self.tokens[start : start + length].tolist()
            start += length

    def followed_by(self, other: "Ragged") -> "Ragged":
        return Ragged(np.concatenate([self.tokens, other.tokens]), np.concatenate([self.lengths, other.lengths]))


@dataclass(frozen=True)
class TokenizedCorpus:
    """Candidates with their references: candidate i has `reference_counts[i]` consecutive texts of `references`."""

    candidates: Ragged
    references: Ragged
    reference_counts: NDArray[np.int32]
    vocabulary: Vocabulary
    _remembered: dict[str, Any] = field(default_factory=dict)

    def cached(self, what: str, compute: Callable[[], T]) -> T:
        """What several computations need of the same entries is made once."""
        if what not in self._remembered:
            self._remembered[what] = compute()
        made: T = self._remembered[what]
        return made

    def __len__(self) -> int:
        return len(self.candidates.lengths)

    def chunks(self, tokens: int) -> Iterator["TokenizedCorpus"]:
        """The same entries in pieces of about `tokens` tokens, to bound what is in memory at once."""
        by_candidate = _offsets(self.candidates.lengths)
        by_reference = _offsets(self.references.lengths)
        first_reference = _offsets(self.reference_counts)
        load = by_candidate + by_reference[first_reference]
        start = 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(load, load[start] + tokens)))
            stop = min(stop, len(self))
            yield TokenizedCorpus(
                self.candidates.slice(start, stop, by_candidate),
                self.references.slice(int(first_reference[start]), int(first_reference[stop]), by_reference),
                self.reference_counts[start:stop],
                self.vocabulary,
            )
            start = stop

    def entry_of_reference(self) -> Ints:
        return np.repeat(np.arange(len(self)), self.reference_counts)

    def strings(self) -> Iterator[tuple[str, list[str]]]:
        """Each candidate and its references as tokens joined by spaces."""
        words = list(self.vocabulary)
        candidates, references = (
            (" ".join(words[number] for number in text) for text in texts.lists()) for texts in (self.candidates, self.references)
        )
        for count in self.reference_counts.tolist():
            yield next(candidates), [next(references) for _ in range(count)]


class CorpusBuilder:
    """Collects entries batch by batch."""

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

    def _append(self, texts: Sequence[str], tokens: "array[int]", lengths: "array[int]") -> None:
        numbers, counts = self.tokenizer.numbered(texts, self._vocabulary)
        tokens.frombytes(numbers.tobytes())
        lengths.frombytes(counts.tobytes())

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
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets

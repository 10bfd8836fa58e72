"""Counting the n-grams of many texts at once, without a Python loop over them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caplens.text.corpus import Ints, Ragged

Keys = NDArray[np.uint64]
_HASH_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram stands in each text, ordered by text and then by gram.

    `gram` indexes `keys`, the distinct n-grams in ascending order of their 64-bit key.
    """

    text: Ints
    gram: Ints
    count: Ints
    keys: Keys

    @property
    def stride(self) -> int:
        return max(len(self.keys), 1)

    def pairs(self, owner: Ints, which: slice) -> Ints:
        """(owner, gram) as one number, for the counts in `which`, whose texts belong to `owner`."""
        return owner * self.stride + self.gram[which]


def ngram_keys(tokens: NDArray[np.int32], n: int, vocabulary_size: int) -> Keys:
    """A key for the n tokens from each position on.

    Token numbers are read as digits, so that equal keys mean equal n-grams as long as the vocabulary is small enough
    for n digits to fit into 64 bits (65,536 words for n = 4). Beyond that the key is a hash whose chance of a single
    clash among ten million n-grams is about one in a million.
    """
    base = np.uint64(vocabulary_size) if vocabulary_size**n <= 2**64 else _HASH_BASE
    digits = tokens.astype(np.uint64)
    keys = np.zeros(max(len(tokens) - n + 1, 0), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for shift in range(n):
            keys *= base
            keys += digits[shift : shift + len(keys)]
    return keys


def count_ngrams(texts: Ragged, n: int, vocabulary_size: int) -> NgramCounts:
    text = np.repeat(np.arange(len(texts.lengths)), texts.lengths)
    keys = ngram_keys(texts.tokens, n, vocabulary_size)
    inside = text[: len(keys)] == text[n - 1 :]
    distinct, gram = np.unique(keys[inside], return_inverse=True)
    pair, count = np.unique(text[: len(keys)][inside] * max(len(distinct), 1) + gram, return_counts=True)
    text, gram = np.divmod(pair, max(len(distinct), 1))
    return NgramCounts(text, gram, count, distinct)

"""Counting the n-grams of many entries at once: one sort for each order, and no Python loop over n-grams."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Ints
from caplens.text.corpus import TokenizedCorpus

Keys = NDArray[np.uint64]
_HASH_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram stands in each text of some entries, ordered by gram, then by text.

    Texts are numbered with the candidates first, then the references. Grams are numbered 0, 1, …, and `keys` tells them
    apart also across several calls.
    """

    gram: NDArray[np.int32]
    text: NDArray[np.int32]
    count: NDArray[np.int32]
    keys: Keys
    is_candidate: NDArray[np.bool_]
    pair: Ints
    """(gram, entry) as one number; ascending among the candidates, and among the references."""


def count_ngrams(entries: TokenizedCorpus, n: int) -> NgramCounts:
    """Count the n-grams of order 1 to 4 in every candidate and reference of `entries`."""
    texts = entries.candidates.followed_by(entries.references)
    text_at = np.repeat(np.arange(len(texts.lengths), dtype=np.int32), texts.lengths)
    order, gram = _windows(entries, texts.tokens, n)
    inside = (text_at[: len(order)] == text_at[n - 1 :])[order]
    place, gram = order[inside], gram[inside]
    text = text_at[place]

    first = run_starts(gram, text)
    count = np.diff(first, append=len(gram)).astype(np.int32)
    gram, text, place = gram[first], text[first], place[first]
    # Windows across two texts had numbers too; close the gaps they leave.
    starts = run_starts(gram)
    numbers = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=len(gram)))
    keys = ngram_keys(texts.tokens, place[starts], n, len(entries.vocabulary))
    entry_of_text = np.concatenate([np.arange(len(entries)), entries.entry_of_reference()])
    pair = numbers.astype(np.int64) * len(entries) + entry_of_text[text]
    return NgramCounts(numbers, text, count, keys, text < len(entries), pair)


def ngram_keys(tokens: NDArray[np.int32], starts: Ints, n: int, vocabulary_size: int) -> Keys:
    """A 64-bit key for the n tokens from each start on.

    Token numbers are read as digits, so that equal keys mean equal n-grams as long as n digits fit into 64 bits (a
    vocabulary of 65,536 for n = 4). Beyond that the key is a hash: among a hundred million n-grams the chance that any two
    share one is below one in a thousand.
    """
    base = np.uint64(vocabulary_size) if vocabulary_size**n <= 2**64 else _HASH_BASE
    keys = np.zeros(len(starts), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for shift in range(n):
            keys *= base
            keys += tokens[starts + shift].astype(np.uint64)
    return keys


def _windows(entries: TokenizedCorpus, tokens: NDArray[np.int32], n: int) -> tuple[Ints, Ints]:
    """The places in `tokens` where n tokens start, ordered by those tokens, and their number in that order.

    Numbers grow with the tokens and are equal where they are equal. Windows that run from one text into the next are
    included.
    """
    places = max(len(tokens) - n + 1, 0)
    if n == 1:
        codes = tokens.astype(np.uint64)
    else:
        head = _numbers(entries, tokens, min(n - 1, 2))
        tail = head if n != 3 else _numbers(entries, tokens, 1)
        shift = n // 2 if n != 3 else 2
        codes = head[:places] * np.uint64(len(tokens)) + tail[shift : shift + places]
    order, number = _ordered(codes)
    if n <= 2:
        entries.cached(f"{n}-gram numbers", lambda: _scattered(order, number))
    return order, number


def _numbers(entries: TokenizedCorpus, tokens: NDArray[np.int32], n: int) -> Keys:
    """The number of the n tokens from each place on; those of orders 1 and 2 are what higher orders are made of."""
    return entries.cached(f"{n}-gram numbers", lambda: _scattered(*_windows(entries, tokens, n)))


def _ordered(codes: Keys) -> tuple[Ints, Ints]:
    """The places ordered by code, then by place; and the distinct codes numbered, in that order."""
    bits = len(codes).bit_length()
    if len(codes) and int(codes.max()).bit_length() + bits <= 64:
        # Sorting (code, place) as one number is several times as fast as sorting places by code.
        packed = (codes << np.uint64(bits)) | np.arange(len(codes), dtype=np.uint64)
        packed.sort()
        order = (packed & np.uint64((1 << bits) - 1)).astype(np.int64)
        packed >>= np.uint64(bits)
    else:
        order = np.argsort(codes, kind="stable")
        packed = codes[order]
    number = np.zeros(len(codes), dtype=np.int64)
    np.cumsum(packed[1:] != packed[:-1], out=number[1:])
    return order, number


def _scattered(order: Ints, number: Ints) -> Keys:
    """The number at each place."""
    numbers = np.empty(len(order), dtype=np.uint64)
    numbers[order] = number
    return numbers


def run_starts(*columns: NDArray[np.integer[Any]]) -> Ints:
    """Where a new combination of values begins."""
    change = np.zeros(len(columns[0]), dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(change)

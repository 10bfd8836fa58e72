"""N-gram counts of a whole corpus: one sort for each order, and no Python loop over n-grams."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Ints
from caplens.text.corpus import TokenizedCorpus

Keys = NDArray[np.uint64]
Places = NDArray[np.int32]
"""Positions in a chunk of a corpus, which has far fewer tokens than 32 bits count."""
_HASH_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram occurs in each text of a corpus: one row for each (gram, text), sorted by gram, then by text.

    Attributes
    ----------
    gram
        The id of the n-gram in this corpus: 0, 1, ….
    text
        The index of the text, candidates first, then references.
    count
        How often the n-gram occurs in the text.
    keys
        Gram id -> key. Equal n-grams have equal keys in all chunks of a corpus.
    is_candidate
        Whether the text is a candidate.
    pair
        (gram, entry) as one number; ascending among the candidates, and among the references.
    """

    gram: NDArray[np.int32]
    text: NDArray[np.int32]
    count: NDArray[np.int32]
    keys: Keys
    is_candidate: NDArray[np.bool_]
    pair: Ints


def count_ngrams(corpus: TokenizedCorpus, n: int) -> NgramCounts:
    """Count the n-grams of one order, 1 to 4, in every candidate and reference of a corpus."""
    texts = corpus.candidates.concatenated(corpus.references)
    text_at = np.repeat(np.arange(len(texts.lengths), dtype=np.int32), texts.lengths)
    order, rank = _sorted_windows(corpus, texts.tokens, n)
    within_text = (text_at[: len(order)] == text_at[n - 1 :])[order]
    position, rank = order[within_text], rank[within_text]
    text = text_at[position]

    first = run_starts(rank, text)
    count = np.diff(first, append=len(rank)).astype(np.int32)
    rank, text, position = rank[first], text[first], position[first]
    # Windows across two texts had ranks too; gram ids close the gaps they leave.
    starts = run_starts(rank)
    gram = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=len(rank)))
    keys = ngram_keys(texts.tokens, position[starts], n, len(corpus.vocabulary))
    entry_of_text = np.concatenate([np.arange(len(corpus)), corpus.entry_of_reference()])
    pair = gram.astype(np.int64) * len(corpus) + entry_of_text[text]
    return NgramCounts(gram, text, count, keys, text < len(corpus), pair)


def ngram_keys(tokens: NDArray[np.int32], starts: NDArray[np.integer[Any]], n: int, vocabulary_size: int) -> Keys:
    """A 64-bit key for the n-gram at each start.

    Token ids are read as digits, so that equal keys mean equal n-grams as long as n digits fit into 64 bits (a vocabulary of
    65,536 for n = 4). Beyond that the key is a hash: among a hundred million n-grams the probability of any collision is below
    one in a thousand.
    """
    base = np.uint64(vocabulary_size) if vocabulary_size**n <= 2**64 else _HASH_BASE
    keys = np.zeros(len(starts), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for shift in range(n):
            keys *= base
            keys += tokens[starts + shift].astype(np.uint64)
    return keys


def _sorted_windows(corpus: TokenizedCorpus, tokens: NDArray[np.int32], n: int) -> tuple[Places, Places]:
    """The start positions of all windows of n tokens, sorted by their tokens, and the dense rank of each in that order.

    Windows that run from one text into the next are included.
    """
    size = max(len(tokens) - n + 1, 0)
    if n == 1:
        codes = tokens.astype(np.uint64)
    else:
        head = _window_ranks(corpus, tokens, min(n - 1, 2))
        tail = head if n != 3 else _window_ranks(corpus, tokens, 1)
        shift = n // 2 if n != 3 else 2
        codes = head[:size] * np.uint64(len(tokens)) + tail[shift : shift + size]
    order, rank = _sort_and_rank(codes)
    if n <= 2:
        corpus.cached(f"{n}-gram ranks", lambda: _by_position(order, rank))
    return order, rank


def _window_ranks(corpus: TokenizedCorpus, tokens: NDArray[np.int32], n: int) -> Keys:
    """The dense rank of the window of n tokens at each position; ranks of orders 1 and 2 are combined into higher orders."""
    return corpus.cached(f"{n}-gram ranks", lambda: _by_position(*_sorted_windows(corpus, tokens, n)))


def _sort_and_rank(codes: Keys) -> tuple[Places, Places]:
    """The positions sorted by code, then by position, and the dense rank of each code in that order."""
    bits = len(codes).bit_length()
    if len(codes) and int(codes.max()).bit_length() + bits <= 64:
        # Sorting (code, position) as one number is several times as fast as sorting positions by code.
        packed = (codes << np.uint64(bits)) | np.arange(len(codes), dtype=np.uint64)
        packed.sort()
        order = (packed & np.uint64((1 << bits) - 1)).astype(np.int32)
        packed >>= np.uint64(bits)
    else:
        order = np.argsort(codes, kind="stable").astype(np.int32)
        packed = codes[order]
    rank = np.zeros(len(codes), dtype=np.int32)
    np.cumsum(packed[1:] != packed[:-1], dtype=np.int32, out=rank[1:])
    return order, rank


def _by_position(order: Places, rank: Places) -> Keys:
    """The rank at each position, from ranks in sorted order."""
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = rank
    return ranks


def run_starts(*columns: NDArray[np.integer[Any]]) -> Ints:
    """The indices at which the combination of values in the columns changes, the first index included."""
    change = np.zeros(len(columns[0]), dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(change)

"""The bootstrap of data that no one machine sees: each group counts as often as a Poisson number says, which its key gives.

A group has the same number wherever it appears, so that the parts of a corpus can be resampled apart and their sums added (the
Poisson bootstrap of Hanley and MacGibbon 2006, for streams as in Chamandy et al. 2012).
"""

import hashlib
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats

GroupKeys = NDArray[np.uint64]
_BITS = 16
_PER_HASH = 64 // _BITS
_ROWS_TOGETHER = 4096
_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Constants of SplitMix64 (Steele et al. 2014)."""
_MOST = 10
_SHARES = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(_MOST)])
_COUNTS = np.searchsorted(_SHARES, (np.arange(1 << _BITS) + 0.5) / (1 << _BITS)).astype(np.uint8)
"""16 random bits -> a Poisson number of mean 1."""


def group_keys(groups: Iterable[str]) -> GroupKeys:
    """A hash of each group."""
    digests = (hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest() for group in groups)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def resampled_sums(statistics: Floats, keys: GroupKeys, resamples: int, seed: int) -> Floats:
    """The sums of statistics on each resample: (resamples, columns). Those of parts of a corpus add up."""
    sums = np.zeros((resamples, statistics.shape[1]))
    for start in range(0, len(keys), _ROWS_TOGETHER):
        rows = slice(start, start + _ROWS_TOGETHER)
        sums += _counts(keys[rows], resamples, seed).astype(np.float64) @ statistics[rows]
    return sums


def _counts(keys: GroupKeys, resamples: int, seed: int) -> NDArray[np.uint8]:
    """How often each group counts on each resample: (resamples, groups)."""
    hashes = -(-resamples // _PER_HASH)
    with np.errstate(over="ignore"):
        streams = _mixed(np.arange(hashes, dtype=np.uint64) + _mixed(np.array([seed % 2**64], dtype=np.uint64)))
        bits = _mixed(keys[None, :] ^ streams[:, None])
    words = np.ascontiguousarray(bits).view(np.uint16).reshape(hashes, len(keys), _PER_HASH)
    counts: NDArray[np.uint8] = _COUNTS[np.moveaxis(words, 2, 1).reshape(hashes * _PER_HASH, len(keys))[:resamples]]
    return counts


def _mixed(numbers: GroupKeys) -> GroupKeys:
    """SplitMix64's finaliser: each bit of the input changes half of the bits."""
    mixed = numbers + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))

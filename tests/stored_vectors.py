"""Vectors for tests of the store, and a writer that other processes can import."""

import numpy as np

from caplens.embed import Store


def vectors_of(count: int, dim: int = 5, seed: int = 0):
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def keys_of(count: int, start: int = 0) -> list[bytes]:
    return [b"t%016d" % number for number in range(start, start + count)]


def write_vectors(folder, number):
    vectors = Store(folder).model_vectors("m", "1" * 64)
    for start in range(0, 200, 20):
        vectors.put(keys_of(20, 1000 * number + start), vectors_of(20, seed=number), [False] * 20)
        vectors.put(keys_of(20), vectors_of(20), [False] * 20)

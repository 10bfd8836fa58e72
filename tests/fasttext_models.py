"""Models of fastText, written byte by byte."""

import struct

import numpy as np


def fasttext_model(labels=("__label__deu_Latn", "__label__eng_Latn"), words=("der", "the", "</s>"), dim=4, **changes):
    """A model that identifies languages."""
    settings = {"bucket": 0, "word_ngrams": 1, "loss": 3, "maxn": 0} | changes
    numbers = [dim, 5, 5, 1, 5, settings["word_ngrams"], settings["loss"], 3, settings["bucket"], 0, settings["maxn"], 100]
    head = struct.pack("<ii12id", 793712314, 12, *numbers, 1e-4)
    dictionary = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 100, -1)
    for kind, entries in enumerate((words, labels)):
        dictionary += b"".join(entry.encode() + b"\0" + struct.pack("<qb", 10, kind) for entry in entries)
    rng = np.random.default_rng(0)
    matrices = b"".join(
        b"\0" + struct.pack("<qq", rows, dim) + rng.normal(size=(rows, dim)).astype("<f4").tobytes()
        for rows in (len(words) + settings["bucket"], len(labels))
    )
    return head + dictionary + matrices

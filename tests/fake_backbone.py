"""A backbone that needs no library: vectors are made from what images and texts hold, and every encoding is noted in a file."""

import hashlib
import time
from pathlib import Path

import numpy as np

from caplens.backbones import Backbone, Tokens
from caplens.backbones.base import normalized


class FakeBackbone(Backbone):
    name = "fake:model"
    dim = 8
    max_tokens = 12

    def __init__(self, log: Path | None = None, seconds: float = 0.0, fingerprint: str = "fa" * 32) -> None:
        self.log, self.seconds, self.fingerprint = log, seconds, fingerprint
        self.batches: list[int] = []

    def pixels(self, image):
        return np.asarray(image.resize((4, 4)))

    def encode_pixels(self, batch):
        return self._encode("image", [array.tobytes() for array in batch])

    def tokenize(self, texts, langs=None):
        words = [text.split() for text in texts]
        return [Tokens([_number(word) for word in some[: self.max_tokens]], len(some) > self.max_tokens) for some in words]

    def encode_ids(self, batch):
        return self._encode("text", [" ".join(map(str, ids)).encode() for ids in batch])

    def _encode(self, kind, contents):
        self.batches.append(len(contents))
        time.sleep(self.seconds)
        digests = [hashlib.sha256(content).digest() for content in contents]
        if self.log is not None:
            with self.log.open("a", encoding="ascii") as log:
                log.writelines(f"{kind} {digest.hex()}\n" for digest in digests)
        return normalized(np.array([np.frombuffer(digest[:8], dtype=np.int8) for digest in digests], dtype=np.float32) + 0.5)


def _number(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:3], "big")

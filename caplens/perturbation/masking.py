"""Masking: words hidden behind [MASK]."""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, some
from caplens.perturbation.words import Word

MASK = "[MASK]"


class Masking(Perturbation):
    name = "masking"
    summary = "each word becomes [MASK] with probability 0.4"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word]:
        hit = some(len(words), rng, 1, len(words))
        return [word._replace(text=MASK) if hidden else word for word, hidden in zip(words, hit, strict=True)]

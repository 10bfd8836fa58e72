"""Masking: random words replaced by [MASK]."""

import numpy as np

from caplens.arrays import Flags
from caplens.perturbation.base import Objects, Perturbation, random_mask
from caplens.text.words import Word

MASK = "[MASK]"


class Masking(Perturbation):
    """Replaces random words by [MASK]."""

    name = "masking"
    summary = "each word is replaced by [MASK] with probability 0.4"

    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        return [word._replace(text=MASK) if hidden else word for word, hidden in zip(words, drawn, strict=True)]

    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word]:
        masked = random_mask(len(words), rng, 1, len(words))
        return [word._replace(text=MASK) if hidden else word for word, hidden in zip(words, masked, strict=True)]

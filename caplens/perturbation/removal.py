"""Removal: random words removed."""

import numpy as np

from caplens.arrays import Flags
from caplens.perturbation.base import Objects, Perturbation, random_mask
from caplens.text.words import Word


class Removal(Perturbation):
    """Removes random words; gently, at least one but not all."""

    name = "removal"
    summary = "each word is removed with probability 0.6; gently 0.4, and at least one stays"

    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        return [word for word, kept in zip(words, drawn, strict=True) if kept]

    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word] | None:
        if len(words) < 2:
            return None
        removed = random_mask(len(words), rng, 1, len(words) - 1)
        return [word for word, gone in zip(words, removed, strict=True) if not gone]

"""Repetition: random words repeated."""

import numpy as np

from caplens.arrays import Flags
from caplens.perturbation.base import Objects, Perturbation, random_mask
from caplens.text.words import Word


class Repetition(Perturbation):
    """Repeats random words."""

    name = "repetition"
    summary = "each word is repeated with probability 0.4"

    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        return [copy for word, twice in zip(words, drawn, strict=True) for copy in ([word, word] if twice else [word])]

    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word]:
        repeated = random_mask(len(words), rng, 1, len(words))
        return [copy for word, twice in zip(words, repeated, strict=True) for copy in ([word, word] if twice else [word])]

"""Repetition: random words repeated."""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, random_mask
from caplens.text.words import Word


class Repetition(Perturbation):
    """Repeats random words, at least one."""

    name = "repetition"
    summary = "each word is repeated with probability 0.4"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word]:
        repeated = random_mask(len(words), rng, 1, len(words))
        return [copy for word, twice in zip(words, repeated, strict=True) for copy in ([word, word] if twice else [word])]

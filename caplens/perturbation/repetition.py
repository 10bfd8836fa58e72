"""Repetition: words said twice."""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, some
from caplens.perturbation.words import Word


class Repetition(Perturbation):
    name = "repetition"
    summary = "each word is repeated with probability 0.4"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word]:
        hit = some(len(words), rng, 1, len(words))
        return [one for word, again in zip(words, hit, strict=True) for one in ([word, word] if again else [word])]

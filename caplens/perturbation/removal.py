"""Removal: words left out."""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, some
from caplens.perturbation.words import Word


class Removal(Perturbation):
    name = "removal"
    summary = "each word is left out with probability 0.4; one stays"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word] | None:
        if len(words) < 2:
            return None
        hit = some(len(words), rng, 1, len(words) - 1)
        return [word for word, gone in zip(words, hit, strict=True) if not gone]

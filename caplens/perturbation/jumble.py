"""Jumble: the words in random order."""

import numpy as np

from caplens.arrays import Flags
from caplens.perturbation.base import Objects, Perturbation, reorder
from caplens.text.words import Word


class Jumble(Perturbation):
    """Puts the words in random order."""

    name = "jumble"
    summary = "the words in random order"

    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        return [words[index] for index in rng.permutation(len(words))]

    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word] | None:
        order = reorder([word.text for word in words], rng)
        return None if order is None else [words[index] for index in order]

"""Jumble: words in another order."""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, moved
from caplens.perturbation.words import Word


class Jumble(Perturbation):
    name = "jumble"
    summary = "the words in a random order"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word] | None:
        order = moved([word.text for word in words], rng)
        return None if order is None else [words[place] for place in order]

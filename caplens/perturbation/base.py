"""What a perturbation is: a caption made worse in one way, by rng but always the same for the same seed."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from caplens.perturbation.words import Word, join, split

CHANCE = 0.4
"""How likely each word is to be repeated, removed or masked (PR-MCS, section 5.2)."""


class Perturbation(ABC):
    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word] | None:
        """The words of the worse caption, or None where there is no such caption."""

    def __call__(
        self, caption: str, lang: str | None = None, seed: int = 0, key: str = "", objects: Sequence[str] = ()
    ) -> str | None:
        """The perturbed caption, which differs from the original, or None where that is impossible.

        What happens depends on `seed`, `key` (such as the caption's id) and the caption alone, not on what else is perturbed.
        `objects` are the parts of the caption that matter, where they are known.
        """
        words = split(caption, lang)
        digest = hashlib.sha256("\0".join((str(seed), self.name, key, caption)).encode()).digest()
        changed = self.change(words, np.random.default_rng(list(digest[:16])), lang, objects) if words else None
        made = None if changed is None else join(changed)
        return None if made is None or made == join(words) else made


def some(count: int, rng: np.random.Generator, least: int, most: int) -> np.ndarray:
    """Which of `count` words are hit: each by CHANCE, though at least `least` and at most `most` of them."""
    hit = rng.random(count) < CHANCE
    order = rng.permutation(count)
    for place in order[: max(0, least)]:
        if hit.sum() >= least:
            break
        hit[place] = True
    for place in order:
        if hit.sum() <= most:
            break
        hit[place] = False
    return hit


def moved(items: Sequence[str], rng: np.random.Generator) -> list[int] | None:
    """An order of `items` in which at least one is another than before; None where all are the same."""
    if len(set(items)) < 2:
        return None
    while True:
        order: list[int] = rng.permutation(len(items)).tolist()
        if any(items[new] != items[old] for old, new in enumerate(order)):
            return order

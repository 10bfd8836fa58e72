"""The base class of perturbations, which make a caption worse in one way, at random but reproducibly."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from caplens.text.words import Word, join, split

PROBABILITY = 0.4
"""The probability that a word is repeated, removed or masked (PR-MCS, section 5.2)."""


class Perturbation(ABC):
    """A way to make captions worse. Call it with a caption.

    Attributes
    ----------
    name
        A key of `PERTURBATIONS`.
    summary
        What it does, in one line.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word] | None:
        """The words of the perturbed caption, or None if the caption cannot be perturbed in this way."""

    def __call__(
        self, caption: str, lang: str | None = None, seed: int = 0, key: str = "", objects: Sequence[str] = ()
    ) -> str | None:
        """Perturb a caption. The result depends only on the arguments, not on other captions.

        Parameters
        ----------
        caption
            The caption.
        lang
            Its language; English by default.
        seed
            The seed of the random choices.
        key
            A string that varies the choices between captions, such as the id of the caption.
        objects
            The critical objects, as they are written in the caption. Only `Substitution` uses them.

        Returns
        -------
        str or None
            The perturbed caption, which differs from the original, or None if the caption cannot be perturbed in this way.
        """
        words = split(caption, lang)
        digest = hashlib.sha256("\0".join((str(seed), self.name, key, caption)).encode()).digest()
        changed = self.change(words, np.random.default_rng(list(digest[:16])), lang, objects) if words else None
        perturbed = None if changed is None else join(changed)
        return None if perturbed is None or perturbed == join(words) else perturbed


def random_mask(count: int, rng: np.random.Generator, minimum: int, maximum: int) -> np.ndarray:
    """A random mask over `count` words.

    Each is selected with probability `PROBABILITY`, at least `minimum` and at most `maximum`.
    """
    mask = rng.random(count) < PROBABILITY
    order = rng.permutation(count)
    for index in order[: max(0, minimum)]:
        if mask.sum() >= minimum:
            break
        mask[index] = True
    for index in order:
        if mask.sum() <= maximum:
            break
        mask[index] = False
    return mask


def reorder(items: Sequence[str], rng: np.random.Generator) -> list[int] | None:
    """A random order in which at least one item differs from the original order; None if all items are equal."""
    if len(set(items)) < 2:
        return None
    while True:
        order: list[int] = rng.permutation(len(items)).tolist()
        if any(items[new] != items[old] for old, new in enumerate(order)):
            return order

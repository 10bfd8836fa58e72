"""The base class of perturbations, which make a caption worse in one way, at random but reproducibly.

There are two protocols. `paper` is algorithm 1 of PR-MCS: one draw of words for each caption says which are repeated, masked, and
kept by removal; a caption that comes out unchanged stays as it is. `gentle` removes those that are drawn instead, draws for each
perturbation anew, and changes every caption or leaves it out.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from caplens.arrays import Flags
from caplens.errors import InputError
from caplens.text.words import Word, join, split

PROBABILITY = 0.4
"""The probability that a word is drawn (PR-MCS, section 5.2)."""
Objects = Sequence[str] | None
"""Critical objects of a caption; None if they are not known."""
Protocol = Literal["paper", "gentle"]
PROTOCOLS: dict[Protocol, str] = {
    "paper": "as algorithm 1 of PR-MCS; captions may come out unchanged",
    "gentle": "every caption changes; removal takes 40% of the words, not 60%",
}


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
    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        """The words of the perturbed caption by the protocol `paper`; `drawn` are the same for all perturbations of a caption."""

    @abstractmethod
    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word] | None:
        """The words by the protocol `gentle`, or None if the caption cannot be perturbed in this way."""

    def __call__(
        self,
        caption: str,
        lang: str | None = None,
        seed: int = 0,
        key: str = "",
        objects: Objects = None,
        protocol: Protocol = "paper",
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
            The critical objects, as they are written in the caption; None if they are not known. Only `Substitution` uses them.
        protocol
            One of `PROTOCOLS`.

        Returns
        -------
        str or None
            The perturbed caption; by `paper` it may be the original. None if nothing is left of it, and by `gentle` if it cannot
            be perturbed in this way.
        """
        words = split(caption, lang)
        if not words:
            return None
        rng = _generator(seed, self.name, key, caption)
        if protocol == "paper":
            drawn = _generator(seed, "draw", key, caption).random(len(words)) < PROBABILITY
            return join(self.as_paper(words, drawn, rng, lang, objects)) or None
        changed = self.gently(words, rng, lang, objects)
        perturbed = None if changed is None else join(changed)
        return None if perturbed is None or perturbed == join(words) else perturbed


def check_protocol(name: str) -> Protocol:
    """The protocol of this name; an error if there is none."""
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol {name!r} of perturbations; choose from: {', '.join(PROTOCOLS)}.")
    return name


def _generator(*parts: str | int) -> np.random.Generator:
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(list(digest[:16]))


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

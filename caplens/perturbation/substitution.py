"""Substitution: the things of a caption in each other's places, its grammar as it was.

Critical objects are swapped where they are given, else the nouns.
"""

from collections.abc import Sequence

import numpy as np

from caplens.perturbation.base import Perturbation, moved
from caplens.perturbation.nouns import core, find_nouns
from caplens.perturbation.words import Word, join


class Substitution(Perturbation):
    name = "substitution"
    summary = "critical objects, or nouns, change places"

    def change(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Sequence[str]) -> list[Word] | None:
        if objects:
            return _swapped(join(words), objects, rng)
        places = find_nouns([word.text for word in words], lang)
        order = moved([core(words[place].text) for place in places], rng)
        if order is None:
            return None
        made = list(words)
        for place, new in zip(places, order, strict=True):
            made[place] = words[place]._replace(text=_with_core(words[place].text, core(words[places[new]].text)))
        return made


def _swapped(caption: str, objects: Sequence[str], rng: np.random.Generator) -> list[Word] | None:
    """The caption with its objects moved, each found where it stands last, as in the paper's own code."""
    spans: list[tuple[int, int]] = []
    for text in sorted(set(objects), key=len, reverse=True):
        start = caption.rfind(text)
        if text and start >= 0 and all(start >= end or start + len(text) <= begin for begin, end in spans):
            spans.append((start, start + len(text)))
    spans.sort()
    found = [caption[begin:end] for begin, end in spans]
    order = moved(found, rng)
    if order is None:
        return None
    for (begin, end), new in reversed(list(zip(spans, order, strict=True))):
        caption = caption[:begin] + found[new] + caption[end:]
    return [Word(caption, 0)]


def _with_core(text: str, new: str) -> str:
    """Another word with the same punctuation around it."""
    return text.replace(core(text), new, 1)

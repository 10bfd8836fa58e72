"""Substitution: critical objects or nouns swap places, so that the caption stays grammatical."""

from collections.abc import Sequence

import numpy as np

from caplens.arrays import Flags
from caplens.perturbation.base import Objects, Perturbation, reorder
from caplens.perturbation.nouns import find_nouns, strip_punctuation
from caplens.text.words import Word, join


class Substitution(Perturbation):
    """Swaps the critical objects of a caption, or its nouns if no objects are given."""

    name = "substitution"
    summary = "critical objects, or nouns, swap places"

    def as_paper(
        self, words: list[Word], drawn: Flags, rng: np.random.Generator, lang: str | None, objects: Objects
    ) -> list[Word]:
        if objects is not None:
            return _replace_in_turn(join(words), list(objects), rng) if len(objects) > 1 else words
        return self.gently(words, rng, lang, objects) or words

    def gently(self, words: list[Word], rng: np.random.Generator, lang: str | None, objects: Objects) -> list[Word] | None:
        if objects:
            return _swap_objects(join(words), objects, rng)
        nouns = find_nouns([word.text for word in words], lang)
        order = reorder([strip_punctuation(words[index].text) for index in nouns], rng)
        if order is None:
            return None
        swapped = list(words)
        for index, new in zip(nouns, order, strict=True):
            swapped[index] = words[index]._replace(
                text=_replace_core(words[index].text, strip_punctuation(words[nouns[new]].text))
            )
        return swapped


def _replace_in_turn(caption: str, objects: Sequence[str], rng: np.random.Generator) -> list[Word]:
    """Algorithm 1 of the paper: the last occurrence of each object becomes another one, one after the other.

    The second may hit what the first has put there, so that some captions come out unchanged.
    """
    order = reorder(objects, rng)
    for text, new in zip(objects, order or (), strict=False):
        before, found, after = caption.rpartition(text)
        caption = f"{before}{objects[new]}{after}" if found else caption
    return [Word(caption, 0)]


def _swap_objects(caption: str, objects: Sequence[str], rng: np.random.Generator) -> list[Word] | None:
    """The caption with its objects swapped. The last occurrence of each object is used, as in the code of the paper."""
    spans: list[tuple[int, int]] = []
    for text in sorted(dict.fromkeys(objects), key=len, reverse=True):
        start = caption.rfind(text)
        if text and start >= 0 and all(start >= end or start + len(text) <= begin for begin, end in spans):
            spans.append((start, start + len(text)))
    spans.sort()
    phrases = [caption[begin:end] for begin, end in spans]
    order = reorder(phrases, rng)
    if order is None:
        return None
    for (begin, end), new in reversed(list(zip(spans, order, strict=True))):
        caption = caption[:begin] + phrases[new] + caption[end:]
    return [Word(caption, 0)]


def _replace_core(text: str, new: str) -> str:
    """The text with its word replaced and the punctuation around it unchanged."""
    return text.replace(strip_punctuation(text), new, 1)

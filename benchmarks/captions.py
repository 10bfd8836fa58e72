"""Captions for the speed scripts: synthetic, or real ones if the data is available."""

import lzma
from pathlib import Path

import numpy as np

Entry = tuple[str, list[str]]


def synthetic(images: int, references: int = 5, seed: int = 0) -> list[Entry]:
    """Captions of about eleven words, from a vocabulary of 12,000 words with frequencies that follow Zipf's law.

    The captions of an image share some of their words. Some words have capitals, commas, hyphens or an 's.
    """
    generator = np.random.default_rng(seed)
    words = np.array([_word(number) for number in range(12_000)])
    weights = 1 / np.arange(1, len(words) + 1)
    cumulative = np.cumsum(weights / weights.sum())
    entries = []
    for _ in range(images):
        topic = words[np.searchsorted(cumulative, generator.random(8))]
        texts = []
        for _ in range(references + 1):
            drawn = words[np.searchsorted(cumulative, generator.random(generator.integers(6, 16)))]
            own = generator.random(len(drawn)) < 0.4
            drawn[own] = generator.choice(topic, own.sum())
            texts.append(" ".join(drawn).capitalize() + ".")
        entries.append((texts[0], texts[1:]))
    return entries


def _word(number: int) -> str:
    letters = "etaoinshrdlucmfwyp"
    text, rest = "", number + 20
    while rest:
        rest, digit = divmod(rest, len(letters))
        text += letters[digit]
    endings = {11: ",", 37: "'s", 53: "-like"}
    return text + next((ending for every, ending in endings.items() if number % every == 1), "")


def real(images: int, data: Path) -> list[Entry]:
    """Five English captions of each photo of Multi30k and Flickr8k; the caption of another photo is the candidate.

    There are 37,206 such photos. If more are needed, the first ones are used again, with captions concatenated from two photos.
    """
    groups: dict[str, list[str]] = {}
    for name in ("multi30k/en.tsv.xz", "flickr8k/captions/en.tsv.xz"):
        with lzma.open(data / name, "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                photo, _, caption = line.rstrip("\n").split("\t")
                groups.setdefault(f"{name} {photo}", []).append(caption)
    photos = [captions[:5] for captions in groups.values() if len(captions) >= 5]
    generator = np.random.default_rng(0)
    entries: list[Entry] = []
    for number in range(images):
        own, other = photos[number % len(photos)], photos[generator.integers(len(photos))]
        if number >= len(photos):
            own = [f"{text} {addition}" for text, addition in zip(own, other, strict=True)]
        entries.append((other[0], own))
    return entries

"""What recipes learn from: photos with what is said of them, and captions that people have rated."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.data.languages import base_language
from caplens.data.sample import Picture, Sample
from caplens.errors import InputError


class Caption(NamedTuple):
    """A caption, and the number of the photo that it is about."""

    row: int
    text: str
    lang: str


class Numbered:
    """Pictures in the order they come in."""

    def __init__(self) -> None:
        self.pictures: list[Picture] = []
        self._rows: dict[str, int] = {}

    def caption(self, sample: Sample) -> Caption | None:
        """A sample's caption with the number of its photo, if it has both."""
        if sample.image is None or not sample.caption or not sample.caption.strip():
            return None
        row = self._rows.setdefault(sample.group, len(self._rows))
        if row == len(self.pictures):
            self.pictures.append(sample.image)
        return Caption(row, sample.caption, base_language(sample.lang or "en"))


class Photos:
    """Photos by number, and their captions by language."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.captions: list[dict[str, list[str]]] = []
        numbered = Numbered()
        self.pictures = numbered.pictures
        for caption in filter(None, map(numbered.caption, samples)):
            if caption.row == len(self.captions):
                self.captions.append({})
            self.captions[caption.row].setdefault(caption.lang, []).append(caption.text)
        if not self.pictures:
            raise InputError("no caption has an image; give the folder of the images with --images.")
        if len(self.pictures) < 2:
            raise InputError("captions of at least two photos are needed to tell them apart.")

    def __len__(self) -> int:
        return len(self.pictures)

    def draw(self, count: int, chance: np.random.Generator) -> list[Caption]:
        """A caption of each of `count` photos. Its language is drawn first, so that none is heard only because it is frequent."""
        if count < 2:
            raise InputError("a batch of one photo has nothing to tell it from; take a larger one.")
        made = []
        for row in chance.choice(len(self), min(count, len(self)), replace=False):
            by_language = self.captions[row]
            lang = list(by_language)[chance.integers(len(by_language))]
            made.append(Caption(int(row), by_language[lang][chance.integers(len(by_language[lang]))], lang))
        return made

    def some(self, rows: Sequence[int]) -> "Photos":
        """Those photos alone."""
        made = object.__new__(Photos)
        made.captions, made.pictures = [self.captions[row] for row in rows], [self.pictures[row] for row in rows]
        return made

    @property
    def fingerprint(self) -> str:
        return content_hash([_names(self.pictures), self.captions])


@dataclass(frozen=True)
class Ratings:
    """Captions with the mean of what people gave them, and the photos that they are about."""

    captions: list[Caption]
    values: NDArray[np.float64]
    pictures: list[Picture]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "Ratings":
        numbered = Numbered()
        captions, values = [], []
        for sample in samples:
            caption = numbered.caption(sample) if sample.ratings else None
            if caption is not None:
                captions.append(caption)
                values.append(float(np.mean(sample.ratings)))
        if not captions:
            raise InputError("no caption has both an image and 'ratings'.")
        if not np.isfinite(values).all():
            raise InputError(f"the rating of {captions[int(np.argmin(np.isfinite(values)))].text!r} is no number.")
        if len(set(values)) < 2:
            raise InputError("all ratings are the same, so that nothing can agree with them.")
        return cls(captions, np.array(values), numbered.pictures)

    @property
    def fingerprint(self) -> str:
        return content_hash([_names(self.pictures), self.captions, self.values.tolist()])


def _names(pictures: Sequence[Picture]) -> list[str]:
    """Files by name, wherever they lie."""
    return [Path(picture).name if isinstance(picture, str | PathLike) else "" for picture in pictures]


def content_hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()

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
from caplens.data.media import ImageSource
from caplens.data.sample import Sample
from caplens.errors import InputError


class Caption(NamedTuple):
    """A caption, and the number of the photo that it is about."""

    row: int
    text: str
    lang: str


class ImageIndex:
    """Pictures in the order they come in."""

    def __init__(self) -> None:
        self.images: list[ImageSource] = []
        self._rows: dict[str, int] = {}

    def caption(self, sample: Sample) -> Caption | None:
        """A sample's caption with the number of its photo, if it has both."""
        if sample.image is None or not sample.caption or not sample.caption.strip():
            return None
        row = self._rows.setdefault(sample.group, len(self._rows))
        if row == len(self.images):
            self.images.append(sample.image)
        return Caption(row, sample.caption, base_language(sample.lang or "en"))


class Photos:
    """Photos by number, and their captions by language."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.captions: list[dict[str, list[str]]] = []
        numbered = ImageIndex()
        self.images = numbered.images
        for caption in filter(None, map(numbered.caption, samples)):
            if caption.row == len(self.captions):
                self.captions.append({})
            self.captions[caption.row].setdefault(caption.lang, []).append(caption.text)
        if not self.images:
            raise InputError("no caption has an image; give the folder of the images with --images.")
        if len(self.images) < 2:
            raise InputError("captions of at least two photos are needed to tell them apart.")

    def __len__(self) -> int:
        return len(self.images)

    def draw(self, count: int, rng: np.random.Generator) -> list[Caption]:
        """A caption of each of `count` photos. Its language is drawn first, so that none is heard only because it is frequent."""
        if count < 2:
            raise InputError("a batch of one photo has nothing to tell it from; take a larger one.")
        made = []
        for row in rng.choice(len(self), min(count, len(self)), replace=False):
            by_language = self.captions[row]
            lang = list(by_language)[rng.integers(len(by_language))]
            made.append(Caption(int(row), by_language[lang][rng.integers(len(by_language[lang]))], lang))
        return made

    def some(self, rows: Sequence[int]) -> "Photos":
        """Those photos alone."""
        made = object.__new__(Photos)
        made.captions, made.images = [self.captions[row] for row in rows], [self.images[row] for row in rows]
        return made

    @property
    def fingerprint(self) -> str:
        return content_hash([_names(self.images), self.captions])


@dataclass(frozen=True)
class RatedCaptions:
    """Captions with the mean of what people gave them, and the photos that they are about."""

    captions: list[Caption]
    values: NDArray[np.float64]
    images: list[ImageSource]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "RatedCaptions":
        numbered = ImageIndex()
        captions, values = [], []
        for sample in samples:
            caption = numbered.caption(sample) if sample.ratings else None
            if caption is not None:
                captions.append(caption)
                values.append(float(np.mean(sample.rating_values)))
        if not captions:
            raise InputError("no caption has both an image and 'ratings'.")
        if not np.isfinite(values).all():
            raise InputError(f"the rating of {captions[int(np.argmin(np.isfinite(values)))].text!r} is no number.")
        if len(set(values)) < 2:
            raise InputError("all ratings are the same, so that nothing can agree with them.")
        return cls(captions, np.array(values), numbered.images)

    @property
    def fingerprint(self) -> str:
        return content_hash([_names(self.images), self.captions, self.values.tolist()])


def _names(images: Sequence[ImageSource]) -> list[str]:
    """Files by name, wherever they lie."""
    return [Path(image).name if isinstance(image, str | PathLike) else "" for image in images]


def content_hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()

"""Training data of the recipes: photos with captions, and captions with human ratings."""

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
from caplens.data.ratings import check_criteria, ratings_by
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, image_key
from caplens.errors import InputError, option
from caplens.perturbation.robustness import objects_of


class Caption(NamedTuple):
    """A caption, and the row of its photo."""

    row: int
    text: str
    lang: str


class ImageIndex:
    """Numbers distinct images in order of appearance."""

    def __init__(self) -> None:
        self.images: list[ImageSource] = []
        self._rows: dict[str, int] = {}

    def caption(self, sample: Sample) -> Caption | None:
        """The caption of a sample with the row of its image; None if it lacks either."""
        if sample.image is None or not sample.caption or not sample.caption.strip():
            return None
        row = self._rows.setdefault(sample.group, len(self._rows))
        if row == len(self.images):
            self.images.append(sample.image)
        return Caption(row, sample.caption, base_language(sample.lang or "en"))


class Photos:
    """Photos, and for each its captions by language."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.captions: list[dict[str, list[str]]] = []
        self.objects: dict[str, tuple[str, ...]] = {}
        """Caption -> its critical objects, of captions that name them."""
        index = ImageIndex()
        self.images = index.images
        for sample in samples:
            caption = index.caption(sample)
            if caption is None:
                continue
            objects = objects_of(sample)
            if objects is not None and self.objects.setdefault(caption.text, objects) != objects:
                raise InputError(f"the caption {caption.text!r} appears with other critical 'objects' too. Keep one of them.")
            if caption.row == len(self.captions):
                self.captions.append({})
            self.captions[caption.row].setdefault(caption.lang, []).append(caption.text)
        if not self.images:
            raise InputError(f"no caption has an image; give the folder of the images with {option('images', 'FOLDER')}.")
        if len(self.images) < 2:
            raise InputError("contrastive training needs captions of at least two photos.")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def all_captions(self) -> list[Caption]:
        """Every caption of every photo."""
        return [
            Caption(row, text, lang)
            for row, by_language in enumerate(self.captions)
            for lang, texts in by_language.items()
            for text in texts
        ]

    def draw(self, count: int, rng: np.random.Generator) -> list[Caption]:
        """Draw `count` photos with one caption each. The language is drawn first: all languages of a photo are equally likely."""
        if count < 2:
            raise InputError("a batch of one photo has no negatives; raise train.photos.")
        captions = []
        for row in rng.choice(len(self), min(count, len(self)), replace=False):
            by_language = self.captions[row]
            lang = list(by_language)[rng.integers(len(by_language))]
            captions.append(Caption(int(row), by_language[lang][rng.integers(len(by_language[lang]))], lang))
        return captions

    def some(self, rows: Sequence[int]) -> "Photos":
        """A subset of the photos."""
        subset = object.__new__(Photos)
        subset.captions, subset.images = [self.captions[row] for row in rows], [self.images[row] for row in rows]
        subset.objects = self.objects
        return subset

    @property
    def fingerprint(self) -> str:
        objects = [self.objects] if self.objects else []
        return content_hash([named_contents(self.images), self.captions, *objects])


@dataclass(frozen=True)
class RatedCaptions:
    """Captions with their mean human rating, and their photos."""

    captions: list[Caption]
    values: NDArray[np.float64]
    """The mean rating of each caption."""
    images: list[ImageSource]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "RatedCaptions":
        """The samples that have an image, a caption and ratings."""
        index = ImageIndex()
        captions, values = [], []
        rated = [sample for sample in samples if sample.ratings]
        check_criteria(rated, "Keep those of one.")
        for sample in rated:
            caption = index.caption(sample)
            if caption is not None:
                captions.append(caption)
                values.append(float(np.mean([rating.value for rating in ratings_by(sample)])))
        if not captions:
            raise InputError("no caption has both an image and 'ratings'.")
        if not np.isfinite(values).all():
            raise InputError(f"the rating of {captions[int(np.argmin(np.isfinite(values)))].text!r} is not a number.")
        if len(set(values)) < 2:
            raise InputError("all ratings are the same, so that a correlation with them is not defined.")
        return cls(captions, np.array(values), index.images)

    @property
    def fingerprint(self) -> str:
        return content_hash([named_contents(self.images), self.captions, self.values.tolist()])


def named_contents(images: Sequence[ImageSource]) -> list[tuple[str, str]]:
    """File names without their folders, so that moved files have the same hash, and hashes of what is in them."""
    return [_named_content(image) for image in images]


def _named_content(image: ImageSource) -> tuple[str, str]:
    name = Path(image).name if isinstance(image, str | PathLike) else ""
    try:
        return name, image_key(image).hex()
    except UnreadableError:
        # Reading it will say what is wrong.
        return name, ""


def content_hash(content: object) -> str:
    """SHA-256 of the content as JSON."""
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()

"""`Sample`: one caption about one image or video; `Rating`: one person's judgement of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

from caplens.data.languages import base_language
from caplens.data.media import ImageSource, VideoSource
from caplens.errors import InputError

IMAGE_ID = "image_id"
ITEM = "item"
"""The column of the id under which a benchmark exports a caption that it has several times."""
SOURCE_REFERENCES = "source_references"
"""The column of the texts that a sample's references were translated from, in their order."""
"""The id of a row that has no `id`, as in COCO; in a row that has both, `id` is the caption's and this that of its image."""


class Rating(NamedTuple):
    """One judgement of a caption: who gave it, by which criterion, and when, where that is recorded."""

    value: float
    rater: str | None = None
    criterion: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One caption about one image or video, and what is known about it.

    Parameters
    ----------
    id
        Joins captions to references and pairs the captions of several systems.
    caption
        The text to judge; None only where a file holds nothing but references.
    references
        Captions that people wrote about the same image or video.
    image, video
        What the caption is about: a path, bytes, or an object in memory.
    source
        The text that the caption translates, if it is a translation.
    lang
        A BCP-47 code.
    system
        The captioner that wrote it.
    ratings
        Human judgements of this caption: `Rating` records, or plain numbers.
    meta
        Every other column of the file.
    invalid
        Why the row of a file cannot be used, if it cannot.
    """

    id: str
    caption: str | None = None
    references: tuple[str, ...] = ()
    image: ImageSource | None = None
    video: VideoSource | None = None
    lang: str | None = None
    system: str | None = None
    ratings: tuple[Rating, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    invalid: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise InputError(f"the id of a sample is text, not {self.id!r}.")
        try:
            if isinstance(self.references, str):
                object.__setattr__(self, "references", (self.references,))
            elif not isinstance(self.references, tuple):
                object.__setattr__(self, "references", tuple(self.references))
            if self.ratings and not all(isinstance(rating, Rating) for rating in self.ratings):
                ratings = tuple(rating if isinstance(rating, Rating) else Rating(rating) for rating in self.ratings)
                object.__setattr__(self, "ratings", ratings)
        except TypeError:
            raise InputError(f"sample {self.id!r}: its references are texts and its ratings numbers, in lists.") from None

    @property
    def key(self) -> tuple[str, str | None]:
        """What pairs captions of two systems, or a caption and its references: the id and the language."""
        return self.id, None if self.lang is None else base_language(self.lang)

    @property
    def image_id(self) -> str | None:
        """The `image_id` of a row that has another `id` too, by which references and its image may be found."""
        value = self.meta.get(IMAGE_ID)
        known = isinstance(value, str | int) and not isinstance(value, bool) and str(value) not in ("", self.id)
        return str(value) if known else None

    @property
    def group(self) -> str:
        """What this caption is about: samples of one group share an image and are resampled together."""
        about = self.image if self.image is not None else self.video
        return str(about) if isinstance(about, str | PathLike) else self.image_id or self.id

    @property
    def rating_values(self) -> list[float]:
        return [rating.value for rating in self.ratings]

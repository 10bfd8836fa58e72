"""`Sample`: one caption about one image or video."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from PIL.Image import Image

from caplens.data.languages import base_language


@dataclass(frozen=True, slots=True)
class NoPicture:
    """Stands where a picture should be that may not be opened."""

    reason: str


Picture = str | PathLike[str] | bytes | Image | NoPicture


@dataclass(frozen=True, slots=True)
class Sample:
    """One caption about one image or video, and what is known about it.

    `caption` is None only where a file holds nothing but references. `lang` is a BCP-47 code; `ratings` are human
    judgements of this caption; `meta` keeps whatever else the file said.
    """

    id: str
    caption: str | None = None
    references: tuple[str, ...] = ()
    image: Picture | None = None
    video: str | PathLike[str] | bytes | None = None
    lang: str | None = None
    system: str | None = None
    ratings: tuple[float, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.references, str):
            object.__setattr__(self, "references", (self.references,))
        elif not isinstance(self.references, tuple):
            object.__setattr__(self, "references", tuple(self.references))

    @property
    def key(self) -> tuple[str, str | None]:
        """What pairs captions of two systems, or a caption and its references: the id and the language."""
        return self.id, None if self.lang is None else base_language(self.lang)

    @property
    def group(self) -> str:
        """What this caption is about: samples of one group share an image and are resampled together."""
        source = self.image if self.image is not None else self.video
        return str(source) if isinstance(source, str | PathLike) else self.id

"""`Sample`: one caption about one image or video."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from PIL.Image import Image

Picture = str | PathLike[str] | bytes | Image


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

    @property
    def group(self) -> str:
        """What this caption is about: samples of one group share an image and are resampled together."""
        source = self.image if self.image is not None else self.video
        return str(source) if isinstance(source, str | PathLike) else self.id

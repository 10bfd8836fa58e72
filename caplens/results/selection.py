"""`SelectionResult`: images chosen for languages, and how near each was taken to where its language is spoken."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow
from caplens.results.table import Cell, Table

LEVELS = ("area", "country", "continent", "world")
"""How near to where the language is spoken an image was taken, the nearest first."""


class SelectedImage(NamedTuple):
    """An image that was chosen for a language, and how near to it it was taken."""

    id: str
    image: str
    lang: str
    level: str
    latitude: float
    longitude: float


@dataclass(repr=False)
class SelectionResult(Result):
    """The images of each language, the nearest first; `unknown` has the ids of images that do not say where they were taken."""

    kind = "selection"

    images: list[SelectedImage]
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def counts(self) -> dict[str, Counter[str]]:
        """Language -> level -> images."""
        counts: dict[str, Counter[str]] = {}
        for image in self.images:
            counts.setdefault(image.lang, Counter())[image.level] += 1
        return counts

    def tables(self) -> list[Table]:
        """How many images of each language were taken how near to it."""
        rows: list[list[Cell]] = [[lang, *(levels[level] for level in LEVELS)] for lang, levels in self.counts().items()]
        note = "Area and country are where the language is spoken; images of a continent or of the world make up for too few."
        return [Table(["lang", *LEVELS], rows, "Images by language and nearness", [note])]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each image."""
        for image in self.images:
            yield image._asdict()

    def content(self) -> dict[str, Any]:
        return {"images": [image._asdict() for image in self.images], "unknown": self.unknown, "warnings": self.warnings}

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        images = [
            SelectedImage(
                str(row["id"]), str(row["image"]), str(row["lang"]), LEVELS[LEVELS.index(row["level"])], float(row["latitude"]),
                float(row["longitude"]),
            )
            for row in content["images"]
        ]  # fmt: skip
        return cls(images, [str(name) for name in content["unknown"]], [str(line) for line in content["warnings"]])

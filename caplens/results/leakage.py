"""Images of a benchmark that a model was trained on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from caplens.results.base import Content, Result, ResultRow
from caplens.results.table import Cell, Table


@dataclass(frozen=True)
class LeakageResult(Result):
    """Images of a benchmark that are among training images.

    Attributes
    ----------
    images, trained
        How many images the benchmark has, and how many the training list.
    same_name, same_content
        The images found by file name, and by what the files hold.
    compared
        Images of the benchmark whose content could be compared.
    """

    kind = "leakage"

    benchmark: str
    images: int
    trained: int
    same_name: list[str]
    same_content: list[str]
    compared: int
    warnings: list[str] = field(default_factory=list)

    @property
    def leaked(self) -> list[str]:
        return sorted({*self.same_name, *self.same_content})

    def tables(self) -> list[Table]:
        names, contents = set(self.same_name), set(self.same_content)
        rows: list[list[Cell]] = [
            [image, "yes" if image in names else "", "yes" if image in contents else ""] for image in self.leaked
        ]
        notes = [
            f"{len(self.leaked):,} of the {self.images:,} images of {self.benchmark} are among {self.trained:,} training images;"
            f" the contents of {self.compared:,} could be compared."
        ]
        return [Table(["image", "same name", "same content"], rows, notes=notes)]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per image that leaked."""
        names, contents = set(self.same_name), set(self.same_content)
        for image in self.leaked:
            yield {"image": image, "same name": image in names, "same content": image in contents}

    def content(self) -> dict[str, Any]:
        counts = {"benchmark": self.benchmark, "images": self.images, "trained": self.trained, "compared": self.compared}
        return {**counts, "same_name": self.same_name, "same_content": self.same_content}

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        counts = (content["benchmark"], content["images"], content["trained"])
        return cls(*counts, list(content["same_name"]), list(content["same_content"]), content["compared"])

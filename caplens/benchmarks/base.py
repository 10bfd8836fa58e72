"""What a benchmark is: human judgements read from a data set's own files under a named protocol, and how scores are compared
with them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

from caplens.arrays import Flags, Floats
from caplens.data.image_folder import with_images
from caplens.data.sample import Sample
from caplens.errors import InputError, option

_COLLECTIONS = ("", "benchmarks")
"""Where a folder of several data sets keeps each of them."""


@dataclass(frozen=True)
class BenchmarkData:
    """The captions of a benchmark; those that share a group are about the same image."""

    samples: list[Sample]
    warnings: list[str] = field(default_factory=list, kw_only=True)
    incomplete: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Measures that lack a part of the data set, so that published values are about something else."""


class Published(NamedTuple):
    """What a paper reports: measure -> metric -> value, for one protocol and language."""

    source: str
    protocol: str
    values: dict[str, dict[str, float]]
    lang: str = "en"


class Measured(NamedTuple):
    """One measure of one metric, between -1 and 1."""

    value: float
    drawn: Floats
    """The same on each resample of images."""
    points: int
    """Data points that it is about."""
    ties: float | None = None
    """The share of comparisons that the metric called even."""


L = TypeVar("L", bound=BenchmarkData)


class Benchmark(ABC, Generic[L]):
    """A data set with human judgements.

    A new one says how its files are read; `RatingBenchmark` and `PreferenceBenchmark` do the rest.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    protocols: ClassVar[dict[str, str]]
    """Name -> what it does; the first is the one papers use."""
    published: ClassVar[tuple[Published, ...]] = ()
    folder: ClassVar[str]
    """The usual name of the data set's folder."""
    marker: ClassVar[str]
    """The beginning of the name of the file by which the data set is known."""
    image_folders: ClassVar[tuple[str, ...]] = ("images",)
    """Where the data set keeps its images."""

    @abstractmethod
    def load(self, data: Path, protocol: str, lang: str = "en") -> L:
        """What was judged, with captions and references in `lang` where the data set has them."""

    @abstractmethod
    def judge(self, loaded: L, values: Floats, scored: Flags, resamples: int, seed: int) -> dict[str, Measured]:
        """How well scores agree with people, by each measure; rows that are not `scored` have no value."""

    in_english: ClassVar[bool] = True

    def languages(self, data: Path) -> list[str]:
        """The languages that there are captions in."""
        return ["en"]

    def is_in(self, folder: Path) -> bool:
        return any(True for _ in folder.glob(f"{self.marker}*"))

    def home(self, data: Path) -> Path:
        """The data set's folder: `data` itself, or the one inside a folder of several data sets."""
        if not data.is_dir():
            raise InputError(f"{data}: there is no such folder; pass the folder of the data set with {option('data')}.")
        candidates = [data, *(data / collection / self.folder for collection in _COLLECTIONS)]
        return next((folder for folder in candidates if self.is_in(folder)), data)

    def image_folder(self, data: Path) -> Path:
        folder = next((data / name for name in self.image_folders if (data / name).is_dir()), None)
        if folder is None:
            names = " or ".join(self.image_folders)
            raise InputError(f"{data}: there is no folder of images ({names}); pass it with {option('images', 'FOLDER')}.")
        return folder

    def located(self, samples: Iterable[Sample], images: str | PathLike[str]) -> list[Sample]:
        """The samples with their images' files."""
        return list(with_images(samples, images))

    def published_for(self, protocol: str, lang: str) -> tuple[str, dict[str, dict[str, float]]]:
        """Where published values come from, and measure -> metric -> value; of two papers the first named counts."""
        papers = [paper for paper in self.published if (paper.protocol, paper.lang) == (protocol, lang)]
        values: dict[str, dict[str, float]] = {}
        for paper in reversed(papers):
            for measure, by_metric in paper.values.items():
                values[measure] = values.get(measure, {}) | by_metric
        return "; ".join(paper.source for paper in papers), values

    def check_language(self, data: Path, lang: str) -> None:
        """Raise an error for a language that the data set does not have."""
        languages = self.languages(data)
        if languages and lang not in languages:
            raise InputError(f"{self.name} has no captions in {lang!r} here; there are: {', '.join(languages)}.")

    def image_key(self, name: str) -> str:
        """What an image is known by, whatever its folder and suffix."""
        return Path(name).stem


def count_warning(count: int, published: int, what: str) -> list[str]:
    return [] if count == published else [f"{count:,} {what} where the published data set has {published:,}."]

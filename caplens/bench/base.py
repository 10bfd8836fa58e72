"""What a benchmark is: human judgements read from a data set's own files under a named protocol, and how scores are held
against them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from statistics import mean, median
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from caplens.data.reading import with_images
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.stats import bootstrap, get_coefficient
from caplens.stats.arrays import Floats

Rows = NDArray[np.bool_]
_COLLECTIONS = ("", "benchmarks")
"""Where a folder of several data sets keeps each of them."""


@dataclass(frozen=True)
class Loaded:
    """The captions of a benchmark; those that share a group are about the same image."""

    samples: list[Sample]
    warnings: list[str] = field(default_factory=list, kw_only=True)
    incomplete: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Measures that lack a part of the data set, so that published values are about something else."""


@dataclass(frozen=True)
class Judgements(Loaded):
    """Captions with a human value each, or a row of them where people are kept apart."""

    human: Floats


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


L = TypeVar("L", bound=Loaded)


class Benchmark(ABC, Generic[L]):
    """A data set with human judgements. A new one says how its files are read; `Ratings` and `Contest` do the rest."""

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
    def judge(self, loaded: L, values: Floats, scored: Rows, resamples: int, seed: int) -> dict[str, Measured]:
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
            raise InputError(f"{data}: there is no such folder; give the folder of the data set with --data.")
        candidates = [data, *(data / collection / self.folder for collection in _COLLECTIONS)]
        return next((folder for folder in candidates if self.is_in(folder)), data)

    def image_folder(self, data: Path) -> Path:
        found = next((data / name for name in self.image_folders if (data / name).is_dir()), None)
        if found is None:
            raise InputError(
                f"{data}: there is no folder of images ({' or '.join(self.image_folders)}); give it with --images FOLDER."
            )
        return found

    def located(self, samples: Iterable[Sample], images: str | PathLike[str]) -> list[Sample]:
        """The samples with their images' files."""
        return list(with_images(samples, images))

    def published_for(self, protocol: str, lang: str) -> tuple[str, dict[str, dict[str, float]]]:
        """Where published values come from, and measure -> metric -> value; of two papers the first named counts."""
        found = [some for some in self.published if (some.protocol, some.lang) == (protocol, lang)]
        values: dict[str, dict[str, float]] = {}
        for some in reversed(found):
            for measure, of in some.values.items():
                values[measure] = values.get(measure, {}) | of
        return "; ".join(some.source for some in found), values

    def check_language(self, data: Path, lang: str) -> None:
        """Complain of a language that the data set does not have."""
        known = self.languages(data)
        if known and lang not in known:
            raise InputError(f"{self.name} has no captions in {lang!r} here; there are: {', '.join(known)}.")

    def image_key(self, name: str) -> str:
        """What an image is known by, whatever its folder and suffix."""
        return Path(name).stem


class Ratings(Benchmark[Judgements]):
    """People rated captions; a score is correlated with their ratings."""

    coefficients: ClassVar[tuple[str, ...]] = ("tau-c", "tau-b", "spearman", "pearson")
    """The first is the one papers use."""

    def judge(self, loaded: Judgements, values: Floats, scored: Rows, resamples: int, seed: int) -> dict[str, Measured]:
        human, mine = loaded.human[scored], values[scored]
        groups = [sample.group for sample, kept in zip(loaded.samples, scored, strict=True) if kept]
        found = {}
        for name in self.coefficients:
            coefficient = get_coefficient(name)
            found[name] = Measured(
                coefficient(mine, human), bootstrap(coefficient, mine, human, groups, resamples, seed), len(mine)
            )
        return found


AGGREGATIONS = {
    "expanded": "each rating is a data point (what papers report)",
    "mean": "the mean of a caption's ratings",
    "median": "the median of a caption's ratings",
}


def aggregate(ratings: Sequence[float], protocol: str) -> list[float]:
    """The data points that a caption's ratings make."""
    return {"expanded": list(ratings), "mean": [mean(ratings)], "median": [median(ratings)]}[protocol]


def count_warning(found: int, published: int, what: str) -> list[str]:
    return [] if found == published else [f"{found:,} {what} where the published data set has {published:,}."]

"""The interface of a benchmark: it reads human judgements from a data set's original files and compares scores with them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

from caplens.arrays import Flags, Floats
from caplens.benchmarks.published_by_model import PublishedValues
from caplens.data.image_folder import with_images
from caplens.data.sample import Sample
from caplens.errors import InputError, option

_COLLECTIONS = ("", "benchmarks")
"""Subfolders of a collection of data sets that may hold the folder of each of them."""


@dataclass(frozen=True)
class BenchmarkData:
    """The captions of a benchmark.

    Attributes
    ----------
    samples
        The captions; samples with the same `group` are about the same image.
    warnings
        How the files differ from the published data set.
    incomplete
        Measures for which part of the data set is missing, so that they cannot be compared with published values.
    """

    samples: list[Sample]
    warnings: list[str] = field(default_factory=list, kw_only=True)
    incomplete: frozenset[str] = field(default=frozenset(), kw_only=True)


class Published(NamedTuple):
    """Values that a paper reports, for one protocol and language.

    Attributes
    ----------
    source
        The paper and its table.
    protocol
        The protocol of the benchmark that the values belong to.
    values
        Measure -> metric -> value.
    lang
        The language of the captions.
    """

    source: str
    protocol: str
    values: dict[str, dict[str, float]]
    lang: str = "en"


class Measured(NamedTuple):
    """A measure (coefficient or accuracy) of one metric, from -1 to 1."""

    value: float
    drawn: Floats
    """The value on each resample of images."""
    points: int
    """The number of data points."""
    ties: float | None = None
    """The share of comparisons in which the metric scores both sides the same."""


L = TypeVar("L", bound=BenchmarkData)


class Benchmark(ABC, Generic[L]):
    """A data set with human judgements.

    Derive from `RatingBenchmark` or `PreferenceBenchmark`, set the class attributes and implement `load`.

    Attributes
    ----------
    name, summary
        The name on the command line, and one line of description.
    protocols
        Name -> description; the first is the one that papers use.
    published
        What papers report.
    folder
        The usual name of the data set's folder.
    marker
        The start of the name of a file that identifies the data set.
    image_folders
        Where the data set keeps its images; the first that exists is used.
    in_english
        Whether there are captions in English.
    """

    name: str
    summary: ClassVar[str]
    protocols: ClassVar[dict[str, str]]
    published: ClassVar[tuple[Published, ...]] = ()
    folder: ClassVar[str]
    marker: ClassVar[str]
    image_folders: ClassVar[tuple[str, ...]] = ("images",)
    in_english: ClassVar[bool] = True

    @abstractmethod
    def load(self, data: Path, protocol: str, lang: str = "en") -> L:
        """Read the data set.

        Parameters
        ----------
        data
            The folder of the data set.
        protocol
            One of `protocols`.
        lang
            The language of captions and references.

        Raises
        ------
        InputError
            If a file is missing or not as expected.
        """

    @abstractmethod
    def judge(self, loaded: L, values: Floats, scored: Flags, resamples: int, seed: int) -> dict[str, Measured]:
        """Measure how well scores agree with people.

        Parameters
        ----------
        loaded
            What `load` returned.
        values
            The score of each sample.
        scored
            Which samples have a score; the values of others are ignored.
        resamples, seed
            How often images are resampled, and the seed of the random generator.

        Returns
        -------
        dict of str to Measured
            Measure -> value.
        """

    def languages(self, data: Path) -> list[str]:
        """The languages that have captions in the folder `data`."""
        return ["en"]

    def is_in(self, folder: Path) -> bool:
        """Whether `folder` holds the data set."""
        return any(True for _ in folder.glob(f"{self.marker}*"))

    def home(self, data: Path) -> Path:
        """The data set's folder: `data` itself, or the one inside it if `data` is a collection of data sets."""
        if not data.is_dir():
            raise InputError(f"{data}: there is no such folder; pass the folder of the data set with {option('data')}.")
        candidates = [data, *(data / collection / self.folder for collection in _COLLECTIONS)]
        return next((folder for folder in candidates if self.is_in(folder)), data)

    def image_folder(self, data: Path) -> Path:
        """The data set's folder of images."""
        folder = next((data / name for name in self.image_folders if (data / name).is_dir()), None)
        if folder is None:
            names = " or ".join(self.image_folders)
            raise InputError(f"{data}: there is no folder of images ({names}); pass it with {option('images', 'FOLDER')}.")
        return folder

    def located(self, samples: Iterable[Sample], images: str | PathLike[str]) -> list[Sample]:
        """The samples with the paths of their images in the folder `images`."""
        return list(with_images(samples, images))

    def published_for(self, protocol: str, lang: str) -> tuple[str, PublishedValues]:
        """The sources of published values, and measure -> metric -> value. If papers differ, the first one counts."""
        papers = [paper for paper in self.published if (paper.protocol, paper.lang) == (protocol, lang)]
        values: dict[str, dict[str, float | None]] = {}
        for paper in reversed(papers):
            for measure, by_metric in paper.values.items():
                values.setdefault(measure, {}).update(by_metric)
        return "; ".join(paper.source for paper in papers), values

    def check_language(self, data: Path, lang: str) -> None:
        """Raise an error for a language that the data set does not have."""
        languages = self.languages(data)
        if languages and lang not in languages:
            raise InputError(
                f"{self.name} has no captions in {lang!r} here; there are: {', '.join(languages)}. Translations are read from"
                f" {self.name}.{lang}.jsonl beside its files."
            )

    def image_key(self, name: str) -> str:
        """What identifies an image in any copy: its file name without suffix."""
        return Path(name).stem


def count_warning(count: int, published: int, what: str) -> list[str]:
    """A warning if `count` is not that of the published data set, else none."""
    return [] if count == published else [f"{count:,} {what} where the published data set has {published:,}."]

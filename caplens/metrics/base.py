"""What a metric is: what it needs, what it collects while samples stream by, and how it computes scores from that."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar, Self

from caplens.data.media import ImageSource, MissingImage, VideoSource
from caplens.data.sample import Sample
from caplens.metrics.options import ScoringOptions
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.version import __version__

_BATCH = 2048


class Collector(ABC):
    """Takes in samples batch by batch and keeps only what its metrics need.

    Metrics whose collectors have equal keys share one.
    """

    key: Hashable
    needs: frozenset[str]

    def __init__(self, needs: frozenset[str]) -> None:
        self.needs = needs
        self.errors: dict[int, RowError] = {}
        """Row -> why it has no score."""

    def feed(self, first: int, batch: Sequence[Sample]) -> None:
        """Take in the samples of a batch that have what is needed, without rows whose error is known already.

        `first` is the row of the first sample in the result.
        """
        usable: list[int] = []
        for index, sample in enumerate(batch):
            if first + index in self.errors:
                continue
            error = missing_input(sample, self.needs)
            if error is None:
                usable.append(index)
            else:
                self.errors[first + index] = error
        self.add([first + index for index in usable], [batch[index] for index in usable])

    @abstractmethod
    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        """Take in samples that can be scored; `rows` are their rows in the result."""

    def finish(self) -> None:  # noqa: B027
        """Called when all samples are in; nothing to do for collectors that keep up with them."""

    def warnings(self) -> list[str]:
        return []


def missing_input(sample: Sample, needs: frozenset[str]) -> RowError | None:
    """Why a sample cannot be scored, or None if it can."""
    if sample.invalid:
        return RowError(sample.invalid, unusable=True)
    if "caption" in needs and not (sample.caption and sample.caption.strip()):
        return RowError("the caption is empty")
    if "references" in needs and not any(text.strip() for text in sample.references):
        return RowError("there are no references")
    if "source" in needs and not (sample.source and sample.source.strip()):
        return RowError("there is no source text")
    for name in ("video", "image"):
        if name in needs and (error := _missing(getattr(sample, name), name)) is not None:
            return error
    return None


def _missing(source: ImageSource | VideoSource | None, what: str) -> RowError | None:
    if source is None or (isinstance(source, str) and not source):
        return RowError(f"there is no {what}")
    return RowError(source.reason, source.unusable) if isinstance(source, MissingImage) else None


def batched(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    iterator = iter(samples)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


class Metric(ABC):
    """A score of captions. Options are set when it is made; a run collects samples and then computes.

    Attributes
    ----------
    name
        Under which results have it.
    needs
        What a sample must have: caption, references, image, video, source; and `encoder`, if a model of images and texts computes
        the score. How a metric computes is its own affair: one that looks at image and text together needs an image and no
        encoder.
    summary
        One line for `caplens list metrics`.
    """

    name: str
    needs: frozenset[str] = frozenset({"caption"})
    summary: ClassVar[str] = ""

    @property
    def needs_all_captions(self) -> bool:
        """Whether the score of a caption, or the corpus score, depends on all captions in another way than by sums."""
        return False

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        """The metric with those of the options that it has."""
        return cls()

    @abstractmethod
    def collectors(self) -> tuple[Collector, ...]:
        """What the metric computes from. Of several metrics whose collectors have the same key, one collector serves all."""

    @abstractmethod
    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        """The scores of `size` samples from the collectors in the order of `collectors`; those without a score are NaN."""

    def __call__(self, samples: Iterable[Sample]) -> Scores:
        """The scores of samples; to score with several metrics in one pass, use `caplens.score`."""
        collectors, size = self.collectors(), 0
        for batch in batched(samples):
            for collector in collectors:
                collector.feed(size, batch)
            size += len(batch)
        for collector in collectors:
            collector.finish()
        return with_errors(self.compute(collectors, size), collectors)


def with_errors(scores: Scores, collected: Sequence[Collector]) -> Scores:
    """The scores of a metric with the errors of what it was computed from."""
    errors = {row: error for collector in collected for row, error in collector.errors.items()}
    return replace(scores, errors={**scores.errors, **dict(sorted(errors.items()))})


def signature(name: str, **fields: object) -> str:
    """`cider-d|tok:ptb|df:corpus|v:0.2.0`"""
    return "|".join([name, *(f"{key}:{value}" for key, value in fields.items()), f"v:{__version__}"])

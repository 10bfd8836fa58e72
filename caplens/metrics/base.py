"""What a metric is, and what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from caplens.data.sample import NoPicture, Sample
from caplens.version import __version__

Floats = NDArray[np.float64]
Pool = Callable[[Floats], Floats]

_BATCH = 2048


@dataclass(frozen=True)
class Scores:
    """The result of one metric: a value for each sample (NaN where there is none), one for the corpus, and how it was made.

    `statistics` holds a row of additive statistics for each sample, and `pool` turns their sums (along the last axis)
    into corpus scores. Resampling thus needs no second scoring, also for metrics whose corpus score is not a mean. Where
    `corpus_is_pooled` is false they only give the mean of the values, and `corpus` was made in another way (METEOR).
    """

    values: Floats
    corpus: float
    signature: str
    statistics: Floats
    pool: Pool
    by_language: dict[str, float] = field(default_factory=dict)
    corpus_is_pooled: bool = True
    warnings: list[str] = field(default_factory=list)
    truncated: dict[int, str] = field(default_factory=dict)
    """Rows whose texts were longer than the model takes, with their languages."""
    doubts: dict[int, str] = field(default_factory=dict)
    """Rows of which the model is no good judge, and why."""


def mean_pool(sums: Floats) -> Floats:
    """The mean, from sums of (value, 1)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = sums[..., 0] / sums[..., 1]
    return mean


def mean_of(values: Floats) -> float:
    """The mean of those that there are."""
    return float(mean_pool(mean_statistics(values).sum(axis=0)))


def mean_statistics(values: Floats) -> Floats:
    scored = ~np.isnan(values)
    return np.stack([np.where(scored, values, 0.0), scored.astype(np.float64)], axis=1)


class Collector(ABC):
    """Takes in samples batch by batch and keeps only what its metrics need. Metrics with equal keys share one."""

    key: Hashable

    def __init__(self) -> None:
        self.problems: dict[int, str] = {}
        """Rows that were taken in and turned out to be unusable, and why."""

    @abstractmethod
    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        """`rows` are the places of `samples` in the result."""

    def finish(self) -> None:  # noqa: B027
        """All samples are in; nothing to do for those that keep up with them."""

    def warnings(self) -> list[str]:
        return []


def problem(sample: Sample, requires: frozenset[str]) -> str | None:
    """Why a sample cannot be scored, or None if it can."""
    if "caption" in requires and not (sample.caption and sample.caption.strip()):
        return "the caption is empty"
    if "references" in requires and not any(text.strip() for text in sample.references):
        return "there are no references"
    if "image" in requires:
        if sample.image is None or sample.image == "":
            return "there is no image"
        if isinstance(sample.image, NoPicture):
            return sample.image.reason
    return None


def batched(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    iterator = iter(samples)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


class Metric(ABC):
    """A score of captions. Options are set when it is made; a run collects samples and then computes."""

    name: str
    requires: ClassVar[frozenset[str]] = frozenset({"caption"})
    """What a sample must have to be scored: caption, references, image."""

    @abstractmethod
    def collector(self) -> Collector: ...

    @abstractmethod
    def compute(self, collected: Collector, size: int) -> Scores:
        """The scores of `size` samples, those that the collector did not get being NaN."""

    def __call__(self, samples: Iterable[Sample]) -> Scores:
        """The scores of samples; to score with several metrics in one pass, use `caplens.score`."""
        collector, size = self.collector(), 0
        for batch in batched(samples):
            good = [index for index, sample in enumerate(batch) if problem(sample, self.requires) is None]
            collector.add([size + index for index in good], [batch[index] for index in good])
            size += len(batch)
        collector.finish()
        return self.compute(collector, size)


def signature(name: str, **choices: object) -> str:
    """`cider-d|tok:ptb|df:corpus|v:0.1.0`"""
    return "|".join([name, *(f"{key}:{value}" for key, value in choices.items()), f"v:{__version__}"])

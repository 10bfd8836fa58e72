"""MID (Kim et al. 2022): the mutual information of an image and its caption, under Gaussians fitted on reference pairs.

That of the reference pairs together is the same for all captions; what differs says how much better a caption fits its image
than chance would have it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from caplens.arrays import Floats, Vectors
from caplens.data.sample import Sample
from caplens.embed import Engine, Text
from caplens.errors import InputError, option
from caplens.metrics.base import Collector, Metric, batched, signature
from caplens.metrics.embedding import CosineCollector, Pending, image_of
from caplens.metrics.options import ScoringOptions
from caplens.metrics.pair_statistics import ADVISED_SHRINKAGE, ENOUGH_PAIRS, PairGaussians, PairStatistics, Shrinkage
from caplens.metrics.prompts import Prompt, Prompts
from caplens.progress import logger
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics

_MOST_REASONS = 10
_CHUNK = 2_048


class MidCollector(CosineCollector):
    """Keeps the pairs of image and caption, and adds up those of image and reference."""

    def __init__(self, engine: Engine, prompts: Prompts, lang: str | None, needs: frozenset[str], *, keeps: bool = True) -> None:
        """Without `keeps`, pairs of image and caption are not kept."""
        super().__init__(engine, prompts, lang, needs)
        self.key = ("pairs", self.key)
        self.pairs: list[Pending] = []
        self._keeps = keeps
        self.statistics: PairStatistics | None = None
        """Of the pairs of image and reference; None as long as there are none."""

    def _take_cosines(self, pending: list[Pending]) -> None:
        super()._take_cosines(pending)
        readable = [(row, sample) for row, sample in pending if row not in self.errors]
        if self._keeps:
            self.pairs += readable
        if self._with_references and readable:
            counts = [len(self._references(sample)) for _, sample in readable]
            texts = [text for _, sample in readable for text in self._references(sample)]
            images = np.repeat(self._images(readable), counts, axis=0)
            backbone = self.engine.backbone
            self.statistics = self.statistics or PairStatistics(
                images.shape[1], backbone.name, backbone.fingerprint, self.prompts.label
            )
            self.statistics.add(images, self._texts(texts))

    def _images(self, pairs: Sequence[Pending]) -> Vectors:
        images = self.engine.images([image_of(sample) for _, sample in pairs])
        return images.vectors[images.index]

    def _texts(self, texts: Sequence[Text]) -> Vectors:
        embeddings = self.engine.texts(texts)
        return embeddings.vectors[embeddings.index]

    def scores(self, gaussians: PairGaussians) -> Iterator[tuple[list[int], Floats]]:
        """Rows and their scores."""
        for start in range(0, len(self.pairs), _CHUNK):
            chunk = self.pairs[start : start + _CHUNK]
            captions = self._texts([self.caption_text(sample) for _, sample in chunk])
            yield [row for row, _ in chunk], gaussians.pointwise(self._images(chunk), captions)


class Mid(Metric):
    """The mutual information of image and caption, in nats; fitted on the references, or on pairs of a file."""

    name = "mid"
    needs: frozenset[str] = frozenset({"caption", "image", "encoder"})

    def __init__(
        self,
        engine: Engine,
        prompt: Prompt | None = None,
        lang: str | None = None,
        statistics: PairStatistics | None = None,
        shrinkage: Shrinkage = 0.0,
    ) -> None:
        self.engine, self.lang, self.prompts = engine, lang, Prompts(prompt, {})
        self._statistics, self._shrinkage = statistics, shrinkage
        self.needs = self.needs if statistics is not None else self.needs | {"references"}
        if statistics is not None and statistics.fingerprint != engine.backbone.fingerprint:
            raise InputError(
                f"the statistics of MID were fitted with {statistics.model}, not with {engine.backbone.name}, or with another"
                " version of it. Fit them with this model ('caplens mid fit')."
            )
        if statistics is not None and statistics.prompt != self.prompts.label:
            raise InputError(
                f"the statistics of MID were fitted with the prompt {statistics.prompt!r}, not with {self.prompts.label!r}. Fit"
                " them with this prompt ('caplens mid fit')."
            )

    @property
    def needs_all_captions(self) -> bool:
        return self._statistics is None

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.engine(), options.prompt, options.lang, options.pair_statistics(), options.shrinkage)

    def collectors(self) -> tuple[MidCollector]:
        return (MidCollector(self.engine, self.prompts, self.lang, self.needs),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, MidCollector)
        statistics = self._statistics or collector.statistics
        values = np.full(size, np.nan)
        if collector.pairs and statistics is not None:
            gaussians = PairGaussians(statistics, self._shrinkage)
            for rows, scores in collector.scores(gaussians):
                values[rows] = scores
        backbone = self.engine.backbone
        return Scores(
            values,
            mean_of(values),
            signature(
                self.name,
                model=f"{backbone.name}@{backbone.fingerprint[:8]}",
                prompt=self.prompts.signature(collector.languages),
                pairs=statistics.label if statistics else 0,
                shrinkage=self._shrinkage,
                dtype=backbone.dtype,
                truncated=len(collector.truncated),
            ),
            mean_statistics(values),
            mean_pool,
            collector.means(values),
            warnings=self._fit_warnings(statistics),
            truncated=dict(collector.truncated),
            coverage_warnings=dict(collector.coverage_warnings),
        )

    def _fit_warnings(self, statistics: PairStatistics | None) -> list[str]:
        if self._shrinkage or statistics is None or statistics.count >= ENOUGH_PAIRS:
            return []
        return [
            f"mid: the covariance is that of {statistics.count:,} pairs; under {ENOUGH_PAIRS:,} its authors advise"
            f" {option('shrinkage', str(ADVISED_SHRINKAGE))}."
        ]


def fit_pairs(samples: Iterable[Sample], engine: Engine, prompt: Prompt | None = None, lang: str | None = None) -> PairStatistics:
    """The statistics of pairs of an image and its references; of its caption, where a sample has no references.

    Parameters
    ----------
    samples
        Captions or references with images.
    engine
        The model.
    prompt, lang
        The text before captions, by default none, and the language of captions that name none.

    Returns
    -------
    PairStatistics
        Mean and covariance of the pairs.
    """
    collector = MidCollector(engine, Prompts(prompt, {}), lang, frozenset({"image", "references"}), keeps=False)
    rows = 0
    for batch in batched(samples):
        collector.feed(rows, [replace(sample, references=sample.references or (sample.caption or "",)) for sample in batch])
        rows += len(batch)
    collector.finish()
    for reason, count in Counter(error.reason for error in collector.errors.values()).most_common(_MOST_REASONS):
        logger.warning(f"{count:,} of {rows:,} samples were left out: {reason}.")
    if collector.statistics is None:
        raise InputError("no sample has both an image that can be read and a text, so that there are no pairs.")
    collector.statistics.left_out = len(collector.errors)
    return collector.statistics

"""What CLIPScore, PAC-S and MCS share: captions, images and references become cosines.

Cosines are computed while samples stream by, a window at a time, and only they are kept: vectors stay in the engine's store, and
memory does not grow with them.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from caplens.arrays import Flags, Floats, Ints, Vectors
from caplens.data.languages import base_language
from caplens.data.media import ImageSource
from caplens.data.sample import Sample
from caplens.embed import Engine, Text
from caplens.errors import option
from caplens.metrics.base import Collector, Metric, signature
from caplens.metrics.options import ScoringOptions
from caplens.metrics.prompts import Prompt, Prompts
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics

_WINDOW = 16_384
"""Samples that are encoded together."""
_CHUNK = 2_048
"""Samples whose vectors are in memory together."""
Pending = tuple[int, Sample]
"""A row of the result, and its sample."""


class CosineChunk(NamedTuple):
    """The cosines of several captions."""

    rows: Ints
    to_image: Floats
    to_reference: Floats
    """Of the nearest reference; NaN where references are not read."""
    languages: Ints
    """As numbers, in the order of first appearance."""


class CosineCollector(Collector):
    """Computes the cosines of captions with their images and, if asked, with the nearest of their references."""

    def __init__(self, engine: Engine, prompts: Prompts, lang: str | None, needs: frozenset[str]) -> None:
        super().__init__(needs)
        self.engine, self.prompts = engine, prompts
        self.key = ("cosines", id(engine), prompts.key, lang, needs)
        self._lang, self._with_references = lang, "references" in needs
        self._pending: list[Pending] = []
        self._languages: dict[str, int] = {}
        self._chunks: list[CosineChunk] = []
        self.reference_counts: set[int] = set()
        self.truncated: dict[int, str] = {}
        """Row -> language, of texts that are longer than the model takes."""
        self.coverage_warnings: dict[int, str] = {}
        """Row -> why the model cannot be trusted there."""

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        self._pending += zip(rows, samples, strict=True)
        if len(self._pending) >= _WINDOW:
            self.finish()

    def finish(self) -> None:
        """Compute the cosines of pending samples."""
        pending, self._pending = self._pending, []
        samples = [sample for _, sample in pending]
        texts = (text for sample in samples for text in (self.caption_text(sample), *self._references(sample)))
        self.engine.prepare([image_of(sample) for sample in samples], texts)
        for start in range(0, len(pending), _CHUNK):
            self._take_cosines(pending[start : start + _CHUNK])

    def _language(self, sample: Sample) -> str:
        return base_language(sample.lang or self._lang or "en")

    def caption_text(self, sample: Sample) -> Text:
        """The caption of a sample, as the model gets it."""
        lang = self._language(sample)
        return Text(sample.caption or "", self.prompts(lang), lang if self.engine.backbone.reads_language else "")

    def _references(self, sample: Sample) -> list[Text]:
        if not self._with_references:
            return []
        caption = self.caption_text(sample)
        return [caption._replace(caption=text) for text in sample.references if text and not text.isspace()]

    def _take_cosines(self, pending: list[Pending]) -> None:
        images = self.engine.images([image_of(sample) for _, sample in pending])
        self.errors |= {pending[place][0]: RowError(reason, unusable=True) for place, reason in images.errors.items()}
        readable = [place for place in range(len(pending)) if place not in images.errors]
        if not readable:
            return
        chunk = [pending[place] for place in readable]
        captions = self.engine.texts([self.caption_text(sample) for _, sample in chunk])
        caption_vectors = captions.vectors[captions.index]
        to_image = _cosines(images.vectors[images.index[readable]], caption_vectors)
        to_reference, truncated = np.full(len(chunk), np.nan), captions.truncated
        if self._with_references:
            to_reference, references_truncated = self._reference_cosines(chunk, caption_vectors)
            truncated = truncated | references_truncated
        rows = np.array([row for row, _ in chunk])
        langs = [self._languages.setdefault(self._language(sample), len(self._languages)) for _, sample in chunk]
        self._chunks.append(CosineChunk(rows, to_image, to_reference, np.array(langs)))
        self.truncated |= {chunk[place][0]: self._language(chunk[place][1]) for place in np.flatnonzero(truncated).tolist()}
        self._check_coverage(chunk, images.out_of_domain[readable])

    def _reference_cosines(self, chunk: list[Pending], caption_vectors: Vectors) -> tuple[Floats, Flags]:
        """The cosine of each caption with the nearest of its references, and whether any of those was truncated."""
        by_sample = [self._references(sample) for _, sample in chunk]
        counts = np.array([len(texts) for texts in by_sample])
        references = self.engine.texts([text for texts in by_sample for text in texts])
        cosines = _cosines(references.vectors[references.index], np.repeat(caption_vectors, counts, axis=0))
        starts = np.cumsum(counts) - counts
        self.reference_counts.update(counts.tolist())
        return np.maximum.reduceat(cosines, starts), np.logical_or.reduceat(references.truncated, starts)

    def _check_coverage(self, chunk: list[Pending], out_of_domain: Flags) -> None:
        backbone = self.engine.backbone
        for (row, sample), unfamiliar in zip(chunk, out_of_domain.tolist(), strict=True):
            about_text = backbone.coverage_warning(sample.caption or "", sample.lang or self._lang)
            about_image = f"{backbone.name} was not trained on such images" if unfamiliar else None
            if about_text or about_image:
                self.coverage_warnings[row] = " and ".join(reason for reason in (about_text, about_image) if reason)

    def chunks(self) -> Iterator[CosineChunk]:
        return iter(self._chunks)

    def means(self, values: Floats) -> dict[str, float]:
        """The mean of each language's values, leaving out those that are NaN."""
        if not self._chunks:
            return {}
        rows = np.concatenate([chunk.rows for chunk in self._chunks])
        langs = np.concatenate([chunk.languages for chunk in self._chunks])
        return {lang: mean_of(values[rows[langs == number]]) for lang, number in self._languages.items()}

    @property
    def languages(self) -> list[str]:
        return list(self._languages)

    def warnings(self) -> list[str]:
        counts = Counter(self.coverage_warnings.values()).most_common()
        coverage = [f"do not trust the scores of {count} of the captions: {reason}." for reason, count in counts]
        return coverage + self._truncation_warnings()

    def _truncation_warnings(self) -> list[str]:
        if not self.truncated:
            return []
        counts = ", ".join(f"{lang} {count}" for lang, count in sorted(Counter(self.truncated.values()).items()))
        what = "captions or references of theirs" if self._with_references else "captions"
        if self.engine.overlong == "truncate":
            how = f"were cut; {option('overlong', 'split')} takes the mean over their sentences instead"
        else:
            how = "have sentences that were cut"
        return [f"{len(self.truncated)} {what} ({counts}) are longer than the model takes and {how}."]


def _cosines(first: Vectors, second: Vectors) -> Floats:
    """Row by row; vectors have length one."""
    cosines: Floats = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    return cosines


def image_of(sample: Sample) -> ImageSource:
    assert sample.image is not None
    return sample.image


class EmbeddingMetric(Metric):
    """A metric of cosines. Subclasses say how they become scores."""

    needs: frozenset[str] = frozenset({"caption", "image", "encoder"})
    prompt: ClassVar[Mapping[str, str]] = {}
    """Language -> the text before captions, unless the user gives another."""
    weight: float = 1.0
    """What cosines are multiplied with, unless the user or the model says otherwise."""

    def __init__(
        self, engine: Engine, prompt: Prompt | None = None, lang: str | None = None, weight: float | None = None
    ) -> None:
        self.engine, self.lang = engine, lang
        backbone = engine.backbone
        self.weight = weight or backbone.weight or self.weight
        self.prompts = Prompts(prompt, self.prompt if backbone.prompted else {})

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.engine(), options.prompt, options.lang, options.weight)

    @abstractmethod
    def score_cosines(self, to_image: Floats, to_reference: Floats) -> Floats:
        """The scores of captions from their cosines to their images and to the nearest of their references."""

    def collectors(self) -> tuple[CosineCollector]:
        return (CosineCollector(self.engine, self.prompts, self.lang, self.needs),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, CosineCollector)
        values = np.full(size, np.nan)
        for chunk in collector.chunks():
            values[chunk.rows] = self.score_cosines(chunk.to_image, chunk.to_reference)
        return Scores(
            values,
            mean_of(values),
            self._signature(collector),
            mean_statistics(values),
            mean_pool,
            collector.means(values),
            warnings=self.warnings(),
            truncated=dict(collector.truncated),
            coverage_warnings=dict(collector.coverage_warnings),
        )

    def warnings(self) -> list[str]:
        return []

    def _signature(self, collector: CosineCollector) -> str:
        backbone, counts = self.engine.backbone, collector.reference_counts
        overlong = {} if self.engine.overlong == "truncate" else {"overlong": self.engine.overlong}
        references = {"refs": f"{min(counts)}-{max(counts)}" if len(counts) > 1 else min(counts)} if counts else {}
        return signature(
            self.name,
            model=f"{backbone.name}@{backbone.fingerprint[:8]}",
            prompt=self.prompts.signature(collector.languages),
            w=f"{self.weight:g}",
            dtype=backbone.dtype,
            **overlong,
            truncated=len(collector.truncated),
            **references,
        )

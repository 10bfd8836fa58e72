"""What quality estimates of translations share: a source text and its translation in, a number out, without a reference."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.metrics.base import Collector, Metric, signature
from caplens.progress import track
from caplens.results.scores import Scores, mean_of, mean_pool, mean_statistics

_CHUNK = 512
SourcePair = tuple[str, str]
"""A source text and its translation."""


class PairCollector(Collector):
    """Keeps sources and captions."""

    def __init__(self, needs: frozenset[str], lang: str | None) -> None:
        super().__init__(needs)
        self.key = ("source and caption", needs, lang)
        self.pairs: dict[int, SourcePair] = {}
        self.langs: dict[int, str] = {}
        """Row -> the language of the caption."""
        self._lang = lang

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        for row, sample in zip(rows, samples, strict=True):
            self.pairs[row] = (sample.source or "", sample.caption or "")
            self.langs[row] = base_language(sample.lang or self._lang or "en")


class QualityEstimate(Metric):
    """How good a translation the caption is of its source. Subclasses estimate pairs."""

    needs: frozenset[str] = frozenset({"caption", "source"})
    lower_is_better: ClassVar[bool] = False
    languages: ClassVar[frozenset[str] | None] = None
    """Those that it knows; None for any."""

    def __init__(self, lang: str | None = None) -> None:
        self.lang = lang

    @abstractmethod
    def estimate(self, pairs: Sequence[SourcePair]) -> Floats:
        """The estimate of each pair."""

    @abstractmethod
    def signature_fields(self) -> dict[str, object]:
        """The options in the signature."""

    def collectors(self) -> tuple[PairCollector]:
        return (PairCollector(self.needs, self.lang),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, PairCollector)
        values = np.full(size, np.nan)
        # Pairs that appear twice are estimated once.
        pairs = list(dict.fromkeys(collector.pairs.values()))
        chunks = [pairs[start : start + _CHUNK] for start in range(0, len(pairs), _CHUNK)]
        estimates = [self.estimate(chunk) for chunk in track(chunks, self.name, len(pairs), size=len)]
        by_pair = dict(zip(pairs, np.concatenate(estimates).tolist() if estimates else [], strict=True))
        for row, pair in collector.pairs.items():
            values[row] = by_pair[pair]
        unknown = sorted(set(collector.langs.values()) - self.languages) if self.languages is not None else []
        warnings = [f"{self.name} was not trained on {', '.join(unknown)}: its values there mean little."] if unknown else []
        return Scores(
            values,
            mean_of(values),
            signature(self.name, **self.signature_fields()),
            mean_statistics(values),
            mean_pool,
            warnings=warnings,
        )

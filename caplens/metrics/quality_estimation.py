"""What quality estimates of translations share: a source text and its translation in, a number out, without a reference."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError, option
from caplens.metrics.base import Collector, Metric, signature
from caplens.progress import track
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics

_CHUNK = 512


class SourcePair(NamedTuple):
    """A source text and its translation."""

    source: str
    translation: str
    lang: str = ""
    """The language of the translation."""


class Estimates(NamedTuple):
    """Of pairs: how good each translation is, and whether a text was longer than the model takes, and was cut."""

    values: Floats
    truncated: Flags


def truncation_warnings(truncated: Mapping[int, str]) -> list[str]:
    if not truncated:
        return []
    return [f"{len(truncated):,} captions or their sources are longer than the model takes and were cut."]


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
            self.langs[row] = base_language(sample.lang or self._lang or "en")
            self.pairs[row] = SourcePair(sample.source or "", sample.caption or "", self.langs[row])


class QualityEstimate(Metric):
    """How good a translation the caption is of its source. Subclasses estimate pairs."""

    needs: frozenset[str] = frozenset({"caption", "source"})
    lower_is_better: ClassVar[bool] = False
    languages: ClassVar[frozenset[str] | None] = None
    """Those that it knows; None for any."""

    def __init__(self, lang: str | None = None) -> None:
        self.lang = lang

    @abstractmethod
    def estimate(self, pairs: Sequence[SourcePair]) -> Estimates:
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
        by_pair: dict[SourcePair, tuple[float, bool]] = {}
        for chunk in track(chunks, self.name, len(pairs), size=len):
            estimates = self.estimate(chunk)
            if not np.isfinite(estimates.values).all():
                raise InputError(
                    f"{self.name}: its model gives values that are not numbers, so it is damaged, or half precision is too small"
                    f" for it. Get it again, or load it with {option('dtype', 'fp32')}."
                )
            rows = zip(estimates.values.tolist(), estimates.truncated.tolist(), strict=True)
            by_pair.update(zip(chunk, rows, strict=True))
        truncated = {}
        for row, pair in collector.pairs.items():
            values[row], was_cut = by_pair[pair]
            if was_cut:
                truncated[row] = collector.langs[row]
        unknown = sorted(set(collector.langs.values()) - self.languages) if self.languages is not None else []
        warnings = [f"{self.name} was not trained on {', '.join(unknown)}: its values there mean little."] if unknown else []
        return Scores(
            values,
            mean_of(values),
            signature(self.name, **self.signature_fields(), truncated=len(truncated)),
            mean_statistics(values),
            mean_pool,
            warnings=warnings + truncation_warnings(truncated),
            truncated=truncated,
        )

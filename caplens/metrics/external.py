"""Scores that were computed elsewhere, read from a file: so that any metric can be compared with human judgements."""

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from caplens.data.files import Source
from caplens.data.formats.json_document import finite_number
from caplens.data.formats.jsonl import read_rows
from caplens.data.rows import canonical_row, sample_from_row
from caplens.data.sample import ITEM, Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, signature
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics
from caplens.terminal import visible

ScoreKey = tuple[str, str | None, str | None]
"""Id, language and system; None for what a score does not name."""


def _keys_of(sample: Sample) -> list[ScoreKey]:
    """Under what the score of a caption may be found, the most exact first."""
    identifier, lang = sample.key
    names = (identifier, _item(sample))
    return list(dict.fromkeys((name, tag, system) for name in names for tag in (lang, None) for system in (sample.system, None)))


def _item(sample: Sample) -> str:
    """The id under which a benchmark exports the caption."""
    return str(sample.meta.get(ITEM, sample.id))


class ExternalScoreCollector(Collector):
    def __init__(self, scores: "Mapping[ScoreKey, float]", source: str, used: dict[ScoreKey, tuple[str | None, ...]]) -> None:
        super().__init__(frozenset())
        self.key = ("external", id(scores))
        self.values: dict[int, float] = {}
        """Row -> score."""
        self._scores, self._source, self._used = scores, source, used

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        for row, sample in zip(rows, samples, strict=True):
            key = next((key for key in _keys_of(sample) if key in self._scores), None)
            if key is None:
                self.errors[row] = RowError(f"{self._source} has no score for it")
                continue
            own = (_item(sample), sample.lang, sample.system, sample.caption)
            if self._used.setdefault(key, own) != own:
                raise InputError(
                    f"{self._source}: the id {sample.id!r} is of captions in several languages, of several systems, or of several"
                    " benchmarks or protocols. Give each score its 'lang' and 'system', and run benchmarks and protocols apart."
                )
            self.values[row] = self._scores[key]


class ExternalScores(Metric):
    """A metric whose values are known: sample id -> score, or id, language and system -> score."""

    needs: frozenset[str] = frozenset()

    def __init__(self, name: str, scores: Mapping[str, float] | Mapping[ScoreKey, float]) -> None:
        self.name = name
        self._scores: dict[ScoreKey, float] = {
            (key, None, None) if isinstance(key, str) else key: score for key, score in scores.items()
        }
        self._used: dict[ScoreKey, tuple[str | None, ...]] = {}
        """Which caption each score belongs to, in all that is scored."""

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "ExternalScores":
        """JSON Lines with `id` and `score`, and perhaps `lang` and `system`; the metric is named after the file."""
        scores: dict[ScoreKey, float] = {}
        with Source(path) as source:
            for place, named in read_rows(source):
                row = canonical_row(named, place)
                identifier, score = row.get("id"), finite_number(row.get("score"))
                if isinstance(identifier, bool) or not isinstance(identifier, str | int) or score is None:
                    raise InputError(f"{place}: an 'id' and a 'score' that is a number are needed.")
                about = {name: row.get(name) for name in ("id", "lang", "system")}
                sample = sample_from_row(about, place, caption_required=False)
                key = (*sample.key, sample.system)
                if key in scores:
                    raise InputError(f"{place}: the id {str(identifier)!r} has a score already. Give each caption one score.")
                scores[key] = score
        if not scores:
            raise InputError(f"{path}: there are no scores in the file.")
        return cls(visible(Path(path).stem), scores)

    def collectors(self) -> tuple[ExternalScoreCollector]:
        return (ExternalScoreCollector(self._scores, self.name, self._used),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, ExternalScoreCollector)
        values = np.full(size, np.nan)
        values[list(collector.values)] = list(collector.values.values())
        # Scores without language and system have the hash that they had before these could be given.
        plain = sorted((key[0] if key[1:] == (None, None) else str(key), score) for key, score in self._scores.items())
        content = hashlib.sha256(repr(plain).encode()).hexdigest()[:8]
        return Scores(values, mean_of(values), signature(self.name, given=content), mean_statistics(values), mean_pool)

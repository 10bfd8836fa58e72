"""Scores that were computed elsewhere, read from a file: so that any metric can be compared with human judgements."""

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from caplens.data.files import Source
from caplens.data.formats.json_document import finite_number
from caplens.data.formats.jsonl import read_rows
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, signature
from caplens.results.scores import RowError, Scores, mean_of, mean_pool, mean_statistics
from caplens.terminal import visible


class ExternalScoreCollector(Collector):
    def __init__(self, scores: Mapping[str, float], source: str) -> None:
        super().__init__(frozenset())
        self.key = ("external", id(scores))
        self.values: dict[int, float] = {}
        """Row -> score."""
        self._scores, self._source = scores, source

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        for row, sample in zip(rows, samples, strict=True):
            if sample.id in self._scores:
                self.values[row] = self._scores[sample.id]
            else:
                self.errors[row] = RowError(f"{self._source} has no score for it")


class ExternalScores(Metric):
    """A metric whose values are known: sample id -> score."""

    needs: frozenset[str] = frozenset()

    def __init__(self, name: str, scores: Mapping[str, float]) -> None:
        self.name, self._scores = name, scores

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "ExternalScores":
        """JSON Lines with `id` and `score`; the metric is named after the file."""
        scores: dict[str, float] = {}
        with Source(path) as source:
            for place, row in read_rows(source):
                identifier, score = row.get("id"), finite_number(row.get("score"))
                if isinstance(identifier, bool) or not isinstance(identifier, str | int) or score is None:
                    raise InputError(f"{place}: an 'id' and a 'score' that is a number are needed.")
                if str(identifier) in scores:
                    raise InputError(f"{place}: the id {str(identifier)!r} has a score already. Give each caption one score.")
                scores[str(identifier)] = score
        if not scores:
            raise InputError(f"{path}: there are no scores in the file.")
        return cls(visible(Path(path).stem), scores)

    def collectors(self) -> tuple[ExternalScoreCollector]:
        return (ExternalScoreCollector(self._scores, self.name),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, ExternalScoreCollector)
        values = np.full(size, np.nan)
        values[list(collector.values)] = list(collector.values.values())
        content = hashlib.sha256(repr(sorted(self._scores.items())).encode()).hexdigest()[:8]
        return Scores(values, mean_of(values), signature(self.name, given=content), mean_statistics(values), mean_pool)

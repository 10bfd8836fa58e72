"""Scores that were made elsewhere, read from a file: so that any metric can be held against people."""

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.data.files import Source
from caplens.data.jsonl import read_rows
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, Scores, mean_of, mean_pool, mean_statistics, signature


class GivenCollector(Collector):
    def __init__(self, scores: Mapping[str, float], source: str) -> None:
        super().__init__()
        self.key = ("given", id(scores))
        self.found: dict[int, float] = {}
        self._scores, self._source = scores, source

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        for row, sample in zip(rows, samples, strict=True):
            if sample.id in self._scores:
                self.found[row] = self._scores[sample.id]
            else:
                self.problems[row] = f"{self._source} has no score for it"


class GivenScores(Metric):
    """A metric whose values are known: sample id -> score."""

    requires: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str, scores: Mapping[str, float]) -> None:
        self.name, self._scores = name, scores

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "GivenScores":
        """JSON Lines with `id` and `score`; the metric is called after the file."""
        found: dict[str, float] = {}
        with Source(path) as source:
            for place, row in read_rows(source):
                value = row.get("score")
                if "id" not in row or isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                    raise InputError(f"{place}: an 'id' and a 'score' that is a number are needed.")
                found[str(row["id"])] = float(value)
        if not found:
            raise InputError(f"{path}: there are no scores in the file.")
        return cls(Path(path).stem, found)

    def collector(self) -> GivenCollector:
        return GivenCollector(self._scores, self.name)

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, GivenCollector)
        values = np.full(size, np.nan)
        values[list(collected.found)] = list(collected.found.values())
        content = hashlib.sha256(repr(sorted(self._scores.items())).encode()).hexdigest()[:8]
        return Scores(values, mean_of(values), signature(self.name, given=content), mean_statistics(values), mean_pool)

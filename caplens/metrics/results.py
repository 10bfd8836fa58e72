"""`Results`: what a scoring run found. The table, JSON, CSV, … are views of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from caplens.metrics.base import Scores
from caplens.version import __version__


@dataclass
class Results:
    """Scores of each metric for each sample.

    `errors` says for the id of a sample why it has no score; `intervals` are confidence intervals of corpus scores.
    """

    ids: list[str]
    groups: list[str]
    metrics: dict[str, Scores]
    errors: dict[str, str]
    failed: int
    truncated: int = 0
    warnings: list[str] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> Scores:
        return self.metrics[metric]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens score`."""
        return {
            "caplens": __version__,
            "ids": self.ids,
            "metrics": {name: self._metric(name, scores) for name, scores in self.metrics.items()},
            "counts": {"samples": len(self.ids), "failed": self.failed, "truncated": self.truncated},
            "errors": self.errors,
            "warnings": self.warnings,
        }

    def _metric(self, name: str, scores: Scores) -> dict[str, Any]:
        found: dict[str, Any] = {
            "corpus": number(scores.corpus),
            "values": [number(value) for value in scores.values.tolist()],
            "signature": scores.signature,
        }
        if name in self.intervals:
            found["low"], found["high"] = (number(bound) for bound in self.intervals[name])
        if len(scores.by_language) > 1:
            found["languages"] = {lang: number(value) for lang, value in sorted(scores.by_language.items())}
        return found

    def to_rows(self) -> Iterator[dict[str, Any]]:
        """A row for each sample, with its scores and its error."""
        values = {name: scores.values.tolist() for name, scores in self.metrics.items()}
        for row, identifier in enumerate(self.ids):
            scores = {name: number(column[row]) for name, column in values.items()}
            error = {"error": self.errors[identifier]} if identifier in self.errors else {}
            yield {"id": identifier, **scores, **error}


def number(value: float) -> float | None:
    """JSON has no NaN: what has no value is null."""
    return None if math.isnan(value) else value

"""`Results`: what a scoring run found. The table, JSON, CSV, … are views of it."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from caplens.libraries import require
from caplens.metrics.base import Scores
from caplens.version import __version__

T = TypeVar("T")
_SHOWN = 3
"""Captions without a score that are named when results are printed."""


@dataclass(repr=False)
class Results:
    """Scores of each metric for each sample.

    A row is told by its id, and by its language and system where an id stands for several. `intervals` are confidence
    intervals of corpus scores.
    """

    ids: list[str]
    groups: list[str]
    metrics: dict[str, Scores]
    problems: dict[int, str] = field(default_factory=dict)
    """Row -> why it has no score, or not of every metric."""
    langs: list[str | None] = field(default_factory=list)
    systems: list[str | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    language_intervals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """Metric -> language -> confidence interval, where there are several languages."""

    def __getitem__(self, metric: str) -> Scores:
        return self.metrics[metric]

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.metrics)

    def __str__(self) -> str:
        """Corpus scores with their intervals, and what one should know about them, a line each."""
        lines = [f"{len(self.ids) - self.failed:,} of {len(self.ids):,} captions scored"]
        for name, scores in self.metrics.items():
            interval = " [{:.3f}, {:.3f}]".format(*self.intervals[name]) if name in self.intervals else ""
            lines.append(f"{name}: {scores.corpus:.3f}{interval}")
        lines += [f"not scored: {identifier}: {why}" for identifier, why in list(self.errors.items())[:_SHOWN]]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def failed(self) -> int:
        return len(self.problems)

    @property
    def truncated(self) -> dict[str, int]:
        """How many captions of each language were cut, or had references that were, because the model takes no longer texts."""
        rows = {row: lang for scores in self.metrics.values() for row, lang in scores.truncated.items()}
        return dict(sorted(Counter(rows.values()).items()))

    @property
    def doubts(self) -> dict[int, str]:
        """Rows whose scores are not to be trusted, because the model was not trained on their language or on such images."""
        return {row: why for scores in self.metrics.values() for row, why in scores.doubts.items()}

    @property
    def errors(self) -> dict[str, str]:
        """Why samples have no score, by id; where ids repeat, with language and system added."""
        return self._by_label(self.problems)

    def _by_label(self, by_row: dict[int, str]) -> dict[str, str]:
        repeated = len(set(self.ids)) < len(self.ids)
        return {self._label(row) if repeated else self.ids[row]: text for row, text in sorted(by_row.items())}

    def _label(self, row: int) -> str:
        return " ".join(part for part in (self.ids[row], self.langs[row], self.systems[row]) if part)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `caplens score`."""
        truncated, doubts = self.truncated, self.doubts
        return {
            "caplens": __version__,
            "ids": self.ids,
            **self._named(),
            "metrics": {name: self._metric(name, scores) for name, scores in self.metrics.items()},
            "counts": {
                "samples": len(self.ids),
                "failed": self.failed,
                "truncated": sum(truncated.values()),
                "doubtful": len(doubts),
            },
            **({"truncated": truncated} if truncated else {}),
            **({"doubts": self._by_label(doubts)} if doubts else {}),
            "errors": self.errors,
            "warnings": self.warnings,
        }

    def _metric(self, name: str, scores: Scores) -> dict[str, Any]:
        found: dict[str, Any] = {
            "corpus": null_if_nan(scores.corpus),
            "values": [null_if_nan(value) for value in scores.values.tolist()],
            "signature": scores.signature,
        }
        if name in self.intervals:
            found["low"], found["high"] = (null_if_nan(bound) for bound in self.intervals[name])
        if len(scores.by_language) > 1:
            found["languages"] = {lang: null_if_nan(value) for lang, value in sorted(scores.by_language.items())}
        if name in self.language_intervals:
            found["language_intervals"] = {
                lang: [null_if_nan(bound) for bound in bounds] for lang, bounds in sorted(self.language_intervals[name].items())
            }
        return found

    def _named(self) -> dict[str, list[str | None]]:
        """Languages and systems, where captions name them."""
        named = {"lang": self.langs, "system": self.systems}
        return {name: column for name, column in named.items() if any(value is not None for value in column)}

    def to_rows(self) -> Iterator[dict[str, Any]]:
        """A row for each sample, with its scores and its error."""
        values = {name: scores.values.tolist() for name, scores in self.metrics.items()}
        named = self._named()
        doubts = self.doubts
        for row, identifier in enumerate(self.ids):
            about = {name: column[row] for name, column in named.items()}
            scores = {name: null_if_nan(column[row]) for name, column in values.items()}
            doubt = {"doubt": doubts.get(row)} if doubts else {}
            yield {"id": identifier, **about, **scores, **doubt, "error": self.problems.get(row)}

    def to_pandas(self) -> Any:
        """A pandas table with a row for each sample."""
        return require("pandas", "A pandas table", "frames").DataFrame(list(self.to_rows()))

    def to_polars(self) -> Any:
        """A polars table with a row for each sample."""
        return require("polars", "A polars table", "frames").DataFrame(list(self.to_rows()), infer_schema_length=None)


def json_object(record: tuple[Any, ...]) -> dict[str, Any]:
    """A named tuple as JSON has it."""
    return {name: null_if_nan(value) for name, value in zip(record._fields, record, strict=True)}  # type: ignore[attr-defined]


def null_if_nan(value: T) -> T | None:
    """JSON has no NaN: what has no value is null."""
    return None if isinstance(value, float) and math.isnan(value) else value

"""Do scores of the same items in two languages agree?"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from caplens.arrays import Floats
from caplens.results.base import Content, Result, ResultRow, floats, json_values
from caplens.results.table import Cell, Table


@dataclass(frozen=True)
class LanguageCorrelation(Result):
    """Pearson's correlation between the scores of the same items in every two languages."""

    kind = "language-correlation"

    benchmark: str
    langs: list[str]
    items: int
    correlations: dict[str, dict[str, Floats]]
    """Metric -> all, low, high -> languages by languages."""
    protocol: str
    with_quality: dict[str, int]
    """Language -> items whose translation has a quality estimate."""
    warnings: list[str] = field(default_factory=list)

    def tables(self) -> list[Table]:
        return [self.metric_table(metric) for metric in self.correlations]

    def metric_table(self, metric: str) -> Table:
        """One row and column per language."""
        parts = self.correlations[metric]
        rows: list[list[Cell]] = [
            [part, lang, *(float(value) for value in line)]
            for part, matrix in parts.items()
            for lang, line in zip(self.langs, matrix, strict=True)
        ]
        notes = [f"Pearson's correlation between the scores of {self.items:,} items in two languages."]
        if len(parts) > 1:
            counts = ", ".join(f"{lang} {count:,}" for lang, count in self.with_quality.items())
            notes.append(
                f"low and high: translations below the 25th and above the 75th percentile of quality (known of: {counts})."
            )
        return Table(
            ["items", "lang", *self.langs],
            rows,
            title=f"{self.benchmark}, {metric} across languages (protocol {self.protocol})",
            notes=notes,
        )

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each metric, part of the items and pair of languages."""
        for metric, parts in self.correlations.items():
            for part, matrix in parts.items():
                for first, line in zip(self.langs, matrix.tolist(), strict=True):
                    for second, value in zip(self.langs, line, strict=True):
                        yield {"metric": metric, "items": part, "first": first, "second": second, "pearson": value}

    def content(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "langs": self.langs,
            "protocol": self.protocol,
            "items": self.items,
            "with_quality": self.with_quality,
            "correlations": {
                metric: {part: [json_values(line) for line in matrix] for part, matrix in parts.items()}
                for metric, parts in self.correlations.items()
            },
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        return cls(
            benchmark=content["benchmark"],
            langs=list(content["langs"]),
            items=content["items"],
            correlations={
                metric: {part: np.array([floats(line) for line in matrix]) for part, matrix in parts.items()}
                for metric, parts in content["correlations"].items()
            },
            protocol=content["protocol"],
            with_quality=dict(content["with_quality"]),
        )

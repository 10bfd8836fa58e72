"""`ScoreSummary`: the corpus scores of captions that were scored partition by partition."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, null_if_nan, number
from caplens.results.table import LEVEL, REPRODUCE, Cell, Table


class SummaryScore(NamedTuple):
    """A corpus score with its interval, and how many captions it is of."""

    value: float
    low: float
    high: float
    scored: int


@dataclass(frozen=True)
class MetricSummary:
    """The corpus score of a metric: over all captions, and by language; and the signature that reproduces it."""

    total: SummaryScore
    languages: dict[str, SummaryScore]
    signature: str


@dataclass(repr=False)
class ScoreSummary(Result):
    """The corpus scores of captions that were scored partition by partition; the scores of captions lie in `folder`.

    Attributes
    ----------
    folder
        Where the scores of captions are, one Parquet file for each partition.
    captions, failed
        How many captions there are, and how many of them have a metric that could not score them.
    partitions
        How many partitions there are.
    metrics
        Name -> `MetricSummary`.
    reused, retries
        Of the run, and not of its result: how many partitions an earlier run had finished, and how often one was lost with a
        process or node and scored again.
    """

    kind = "score-summary"

    folder: str
    captions: int
    failed: int
    partitions: int
    metrics: dict[str, MetricSummary]
    warnings: list[str] = field(default_factory=list)
    reused: int = 0
    retries: int = 0

    def __getitem__(self, metric: str) -> MetricSummary:
        return self.metrics[metric]

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.metrics)

    def __repr__(self) -> str:
        return str(self)

    def tables(self) -> list[Table]:
        rows: list[list[Cell]] = [
            [name, lang, score.value, _interval(score), score.scored] for name, lang, score in self._entries()
        ]
        notes = [
            f"{self.captions:,} captions in {self.partitions:,} partitions, {self.failed:,} of them without a score of some"
            " metric; intervals by Poisson bootstrap over images.",
            *([f"{self.reused:,} partitions were there already."] if self.reused else []),
            *([f"{self.retries:,} times a partition was lost, and scored again."] if self.retries else []),
            f"The scores of captions are in {self.folder}.",
            REPRODUCE,
            *(entry.signature for entry in self.metrics.values()),
        ]
        return [Table(["metric", "language", "score", LEVEL, "captions"], rows, notes=notes)]

    def _entries(self) -> Iterator[tuple[str, str, SummaryScore]]:
        for name, entry in self.metrics.items():
            yield name, "all", entry.total
            if len(entry.languages) > 1:
                for lang, score in entry.languages.items():
                    yield name, lang, score

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per metric and language."""
        for name, lang, score in self._entries():
            yield {"metric": name, "lang": lang, **_record(score)}

    def content(self) -> dict[str, Any]:
        return {
            "folder": self.folder,
            "captions": self.captions,
            "failed": self.failed,
            "partitions": self.partitions,
            "metrics": {
                name: {
                    **_record(entry.total),
                    "languages": {lang: _record(score) for lang, score in entry.languages.items()},
                    "signature": entry.signature,
                }
                for name, entry in self.metrics.items()
            },
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        metrics = {
            str(name): MetricSummary(
                _score(entry), {str(lang): _score(score) for lang, score in entry["languages"].items()}, str(entry["signature"])
            )
            for name, entry in content["metrics"].items()
        }
        counts = {name: int(content[name]) for name in ("captions", "failed", "partitions")}
        return cls(str(content["folder"]), metrics=metrics, warnings=[str(line) for line in content["warnings"]], **counts)


def _record(score: SummaryScore) -> dict[str, Any]:
    return {name: null_if_nan(value) for name, value in score._asdict().items()}


def _score(content: Content) -> SummaryScore:
    return SummaryScore(number(content["value"]), number(content["low"]), number(content["high"]), int(content["scored"]))


def _interval(score: SummaryScore) -> str:
    return "" if score.low != score.low else f"[{score.low:.4f}, {score.high:.4f}]"

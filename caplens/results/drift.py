"""`DriftResult`: how the scores of a new run differ from those of an old one that has other captions."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, null_if_nan, number
from caplens.results.metric_names import printed_metric
from caplens.results.table import LEVEL, Cell, Table, shown_p

ALL = "all"
"""All languages."""
LEVEL_OF_TESTS = 0.05


class DriftCounts(NamedTuple):
    """How many captions have a score, and their mean."""

    captions: int
    mean: float


@dataclass(frozen=True)
class Drift:
    """One metric in one language, or in all.

    Attributes
    ----------
    difference, low, high
        New minus old, with its interval.
    higher
        The probability that a new image scores higher than an old one.
    p, shape_p
        Of the tests for another level and another shape, corrected for the languages of the metric and for there being two tests.
    old_quantiles, new_quantiles
        At 0, 1, …, 100 percent.
    """

    metric: str
    lang: str
    old: DriftCounts
    new: DriftCounts
    difference: float
    low: float
    high: float
    higher: float
    p: float
    shape_p: float
    old_quantiles: tuple[float, ...]
    new_quantiles: tuple[float, ...]

    @property
    def is_worse(self) -> bool:
        """Whether new scores are worse for certain: lower, or higher by a metric of which low values are good."""
        return self.verdict == ("higher" if printed_metric(self.metric).best == "lowest" else "lower")

    @property
    def verdict(self) -> str:
        """What the tests say, in a few words."""
        if min(self.p, self.shape_p) != min(self.p, self.shape_p):
            return "too few"
        if self.p < LEVEL_OF_TESTS:
            return "higher" if self.higher > 0.5 else "lower"
        return "spread differently" if self.shape_p < LEVEL_OF_TESTS else "no change seen"


@dataclass(repr=False)
class DriftResult(Result):
    """How every metric drifted, in all languages and in each."""

    kind = "drift"

    drifts: list[Drift]
    old_name: str = "old"
    new_name: str = "new"
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def __getitem__(self, key: tuple[str, str]) -> Drift:
        """Of (metric, language); the language `all` is all of them."""
        return next(drift for drift in self.drifts if (drift.metric, drift.lang) == key)

    def tables(self) -> list[Table]:
        rows: list[list[Cell]] = [
            [
                drift.metric, drift.lang, drift.old.captions, drift.new.captions, drift.old.mean, drift.new.mean,
                drift.difference, f"[{drift.low:.3f}, {drift.high:.3f}]", drift.higher, shown_p(drift.p),
                shown_p(drift.shape_p), drift.verdict,
            ]
            for drift in self.drifts
        ]  # fmt: skip
        columns = [
            "metric", "lang", "old captions", "new captions", "old mean", "new mean", "new - old", LEVEL, "P(new > old)",
            "p level", "p shape", "new scores are",
        ]  # fmt: skip
        notes = [
            f"old: {self.old_name}; new: {self.new_name}. Intervals by bootstrap over images; tests (Mann-Whitney for the level,"
            " Kolmogorov-Smirnov for the shape) on the mean of each image, corrected by Holm within a metric."
        ]
        return [Table(columns, rows, notes=notes)]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each metric and language."""
        for drift in self.drifts:
            yield {
                "metric": drift.metric, "lang": drift.lang, "old_captions": drift.old.captions,
                "new_captions": drift.new.captions, "old_mean": drift.old.mean, "new_mean": drift.new.mean,
                **{name: null_if_nan(getattr(drift, name)) for name in _NUMBERS}, "verdict": drift.verdict,
            }  # fmt: skip

    def content(self) -> dict[str, Any]:
        return {
            "old_name": self.old_name,
            "new_name": self.new_name,
            "drifts": [_drift_content(drift) for drift in self.drifts],
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        drifts = [_drift_from(entry) for entry in content["drifts"]]
        return cls(drifts, str(content["old_name"]), str(content["new_name"]), [str(line) for line in content["warnings"]])


_NUMBERS = ("difference", "low", "high", "higher", "p", "shape_p")
_QUANTILES = ("old_quantiles", "new_quantiles")


def _drift_content(drift: Drift) -> dict[str, Any]:
    content = asdict(drift)
    for side in ("old", "new"):
        content[side] = getattr(drift, side)._asdict()
    return {**content, **{name: null_if_nan(content[name]) for name in _NUMBERS}}


def _drift_from(content: Content) -> Drift:
    old, new = (DriftCounts(int(content[side]["captions"]), number(content[side]["mean"])) for side in ("old", "new"))
    numbers = {name: number(content[name]) for name in _NUMBERS}
    quantiles = {name: tuple(number(value) for value in content[name]) for name in _QUANTILES}
    if any(len(values) != 101 for values in quantiles.values()):
        raise ValueError("a table of quantiles is damaged")
    return Drift(str(content["metric"]), str(content["lang"]), old, new, **numbers, **quantiles)  # type: ignore[arg-type]

"""`StudyResult`: what people said of captions, by language: how good they are, which system is better, and who agrees."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, null_if_nan, number
from caplens.results.table import LEVEL, Cell, Table, shown_p

ALL = "all"
"""All languages."""


class Bounded(NamedTuple):
    """A value with its 95% interval, by bootstrap over images."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


class Agreement(NamedTuple):
    """How far raters agree: Krippendorff's alpha (ordinal), and Fleiss' kappa where all items have equally many ratings."""

    alpha: float
    kappa: float


@dataclass(frozen=True)
class LanguageQuality:
    """The captions of one system in one language, each by the median of its ratings, as table 2 of Crossmodal-3600.

    Attributes
    ----------
    captions, ratings
        How many captions have ratings, and how many ratings there are.
    at_least
        Label of the scale -> percent of captions that are so good or better; of the lowest label, of those that have it.
    unknown
        Percent of captions of which most raters say that there is not enough information.
    """

    lang: str
    system: str
    captions: int
    ratings: int
    at_least: Mapping[str, Bounded]
    unknown: float
    agreement: Agreement


@dataclass(frozen=True)
class SideBySide:
    """Two systems in one language.

    Attributes
    ----------
    wins, losses
        Percent of images for which a majority of raters prefers the system, or the baseline.
    delta
        Wins minus losses.
    p
        Of the sign test of wins against losses.
    """

    lang: str
    system: str
    baseline: str
    images: int
    judgements: int
    wins: float
    losses: float
    delta: Bounded
    p: float
    agreement: Agreement


@dataclass(frozen=True)
class SystemStrength:
    """The Bradley-Terry strength of a system in one language, a log odds, with its 95% interval."""

    lang: str
    system: str
    strength: Bounded


@dataclass(frozen=True)
class DeltaPair:
    """By how much people, and each metric, prefer a system to its baseline."""

    lang: str
    system: str
    baseline: str
    human: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class DeltaCorrelation:
    """How well differences of a metric predict those of people, over pairs of systems (table 6 of Crossmodal-3600).

    Attributes
    ----------
    both_ways
        Whether each pair counts in both directions, as in the paper. That doubles the pairs and, since the directions mirror
        each other, raises the correlation; once each is sound.
    """

    metric: str
    lang: str
    both_ways: bool
    pairs: int
    pearson: float
    spearman: float
    kendall: float


@dataclass(repr=False)
class StudyResult(Result):
    """What a study found."""

    kind = "study"

    title: str
    task: str
    quality: list[LanguageQuality] = field(default_factory=list)
    side_by_sides: list[SideBySide] = field(default_factory=list)
    strengths: list[SystemStrength] = field(default_factory=list)
    pairs: list[DeltaPair] = field(default_factory=list)
    correlations: list[DeltaCorrelation] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def tables(self) -> list[Table]:
        tables = (self._quality_table(), self._side_by_side_table(), self._strengths_table(), self._correlations_table())
        shown = [table for table in tables if table.rows]
        return shown or [Table(["study", "task"], [[self.title, self.task]], notes=["Nobody has answered yet."])]

    def _quality_table(self) -> Table:
        labels = list(self.quality[0].at_least) if self.quality else []
        columns = ["lang", "system", "captions", "ratings", *_at_least_names(labels), "% no information", "alpha", "kappa"]
        rows: list[list[Cell]] = [
            [
                entry.lang, entry.system or "–", entry.captions, entry.ratings, *(str(entry.at_least[label]) for label in labels),
                entry.unknown, *entry.agreement,
            ]
            for entry in self.quality
        ]  # fmt: skip
        note = f"Each caption by the median of its ratings, the lower one of two. {LEVEL} intervals by bootstrap over images."
        return Table(columns, rows, "Quality of captions", [note])

    def _side_by_side_table(self) -> Table:
        rows: list[list[Cell]] = [
            [
                entry.lang, entry.system, entry.baseline, entry.images, entry.judgements, entry.wins, entry.losses,
                str(entry.delta), shown_p(entry.p), *entry.agreement,
            ]
            for entry in self.side_by_sides
        ]  # fmt: skip
        columns = [
            "lang", "system", "baseline", "images", "judgements", "% wins", "% losses", "wins - losses", "p", "alpha", "kappa",
        ]  # fmt: skip
        note = (
            f"An image is won where a majority of its raters prefers the system. {LEVEL} intervals by bootstrap over images; p of"
            " the sign test."
        )
        return Table(columns, rows, "Side by side", [note])

    def _strengths_table(self) -> Table:
        rows: list[list[Cell]] = [
            [entry.lang, entry.system, entry.strength.value, f"[{entry.strength.low:.3f}, {entry.strength.high:.3f}]"]
            for entry in self.strengths
        ]
        note = (
            "A difference of 1.1 means that the stronger system is preferred three times as often. Each judgement counts; a tie"
            " is half a win."
        )
        return Table(["lang", "system", "strength", LEVEL], rows, "Bradley-Terry strengths", [note])

    def _correlations_table(self) -> Table:
        rows: list[list[Cell]] = [
            [
                entry.metric, entry.lang, "both ways" if entry.both_ways else "once", entry.pairs, entry.pearson, entry.spearman,
                entry.kendall,
            ]
            for entry in self.correlations
        ]  # fmt: skip
        columns = ["metric", "lang", "each pair counts", "N", "Pearson", "Spearman", "Kendall"]
        notes = [
            "Differences of the metric against wins - losses of people, over pairs of systems. Counting each pair both ways is"
            " what table 6 of Crossmodal-3600 does; counting it once is sound."
        ]
        return Table(columns, rows, "How well a metric predicts people", notes)

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each value, of all tables."""
        for quality in self.quality:
            about = {"table": "quality", "lang": quality.lang, "system": quality.system, "baseline": None, "n": quality.captions}
            for label, estimate in quality.at_least.items():
                yield {**about, "measure": f"at least {label}", **_plain(estimate._asdict())}
            yield {**about, "measure": "no information", "value": quality.unknown, "low": None, "high": None}
        for pair in self.side_by_sides:
            about = {
                "table": "side by side",
                "lang": pair.lang,
                "system": pair.system,
                "baseline": pair.baseline,
                "n": pair.images,
            }
            for measure in ("wins", "losses", "p"):
                yield {**about, "measure": measure, "value": getattr(pair, measure), "low": None, "high": None}
            yield {**about, "measure": "wins - losses", **_plain(pair.delta._asdict())}
        for strength in self.strengths:
            about = {"table": "strength", "lang": strength.lang, "system": strength.system, "baseline": None, "n": None}
            yield {**about, "measure": "log odds", **_plain(strength.strength._asdict())}
        for row in self.correlations:
            about = {"table": "correlation", "lang": row.lang, "system": row.metric, "baseline": None, "n": row.pairs}
            for measure in ("pearson", "spearman", "kendall"):
                name = f"{measure}, {'both ways' if row.both_ways else 'once'}"
                yield {**about, "measure": name, "value": null_if_nan(getattr(row, measure)), "low": None, "high": None}

    def content(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "task": self.task,
            **{name: [_plain(asdict(entry)) for entry in getattr(self, name)] for name in _LISTS},
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        lists = {name: [_entry(kind, entry) for entry in content[name]] for name, kind in _LISTS.items()}
        warnings = [str(line) for line in content["warnings"]]
        return cls(str(content["title"]), str(content["task"]), **lists, warnings=warnings)


_LISTS: dict[str, type] = {
    "quality": LanguageQuality,
    "side_by_sides": SideBySide,
    "strengths": SystemStrength,
    "pairs": DeltaPair,
    "correlations": DeltaCorrelation,
}
_TUPLES: dict[str, type] = {"delta": Bounded, "strength": Bounded, "agreement": Agreement}
_NUMBERS = frozenset({"p", "wins", "losses", "unknown", "human", "pearson", "spearman", "kendall"})


def _at_least_names(labels: list[str]) -> list[str]:
    """EXCELLENT, GOOD, MEDIUM, BAD -> % EXCELLENT, % GOOD+, % MEDIUM+, % BAD, as the paper has it."""
    between = range(1, len(labels) - 1)
    return [f"% {label}{'+' if place in between else ''}" for place, label in enumerate(labels)]


def _plain(value: Any) -> Any:
    """Tuples as lists and NaN as null, in all that a record holds."""
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else null_if_nan(value)


def _entry(kind: type, content: Content) -> Any:
    values = dict(content)
    for name, record in _TUPLES.items():
        if name in values:
            values[name] = record(*map(number, values[name]))
    values |= {name: number(values[name]) for name in _NUMBERS & values.keys()}
    if "at_least" in values:
        values["at_least"] = {str(label): Bounded(*map(number, entry)) for label, entry in values["at_least"].items()}
    if "metrics" in values:
        values["metrics"] = {str(name): number(entry) for name, entry in values["metrics"].items()}
    return kind(**values)

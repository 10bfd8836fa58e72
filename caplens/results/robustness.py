"""How much metrics notice that captions were made worse."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, json_object, numbers_of
from caplens.results.table import REPRODUCE, Cell, Table

ALL = "all"
"""Stands for every language, or for the mean of the perturbations."""


class PerturbationEffect(NamedTuple):
    """The effect of one perturbation on one metric, in one language."""

    metric: str
    lang: str
    perturbation: str
    captions: int
    original: float
    """Mean score of the captions."""
    perturbed: float
    drop: float
    """In percent of the original; negative where scores fall, as the paper prints it."""
    drop_low: float
    drop_high: float
    accuracy: float
    """Of 100 captions that the perturbation changed, how many score higher than their perturbed form."""
    accuracy_low: float
    accuracy_high: float
    ties: float


def _shown(value: float, form: str) -> str | None:
    return None if isnan(value) else f"{value:{form}}"


@dataclass
class RobustnessResult(Result):
    """How far scores drop when captions are perturbed, and how often they drop at all.

    Attributes
    ----------
    effects
        One for each metric, language and perturbation.
    skipped
        Perturbation -> captions that it cannot be applied to.
    failed
        Captions that could not be scored and were left out.
    protocol
        How captions were perturbed: `paper` or `gentle`.
    unchanged
        Perturbation -> captions that came out as they were.
    nouns
        Language -> how nouns were found for substitution: tagger, rules or content words.
    seed
        Of the perturbations.
    """

    kind = "robustness"

    effects: list[PerturbationEffect]
    skipped: dict[str, int]
    failed: int
    signatures: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    protocol: str = "gentle"
    unchanged: dict[str, int] = field(default_factory=dict)
    nouns: dict[str, str] = field(default_factory=dict)
    seed: int = 0

    def tables(self) -> list[Table]:
        return [self.effects_table()]

    def effects_table(self) -> Table:
        """Rows metrics and languages, columns perturbations.

        The drop in percent, and how often the worse caption scores lower.
        """
        kinds = list(dict.fromkeys(effect.perturbation for effect in self.effects))
        rows: list[list[Cell]] = []
        by_row: dict[tuple[str, str], dict[str, PerturbationEffect]] = {}
        for effect in self.effects:
            by_row.setdefault((effect.metric, effect.lang), {})[effect.perturbation] = effect
        for (metric, lang), effects in by_row.items():
            drops = [_shown(effects[kind].drop, "+.1f") if kind in effects else None for kind in kinds]
            shares = [_shown(effects[kind].accuracy, ".1f") if kind in effects else None for kind in kinds]
            rows += [[metric, lang, "drop, %", *drops], [metric, lang, "noticed, %", *shares]]
        skipped, unchanged = (
            ", ".join(f"{name} {count}" for name, count in counts.items() if count) for counts in (self.skipped, self.unchanged)
        )
        notes = [
            f"Protocol {self.protocol}. drop: of the mean score, as in PR-MCS; noticed: of 100 captions that were changed, how"
            " many score higher than their perturbed form; all: the mean over perturbations, then over languages.",
            *([f"Captions that cannot be perturbed so: {skipped}."] if skipped else []),
            *([f"Captions that came out as they were: {unchanged}."] if unchanged else []),
            *([f"Nouns for substitution: {nouns}."] if (nouns := self._shown_nouns()) else []),
            REPRODUCE,
            *self.signatures.values(),
        ]
        return Table(["metric", "lang", "", *kinds], rows, notes=notes)

    def _shown_nouns(self) -> str:
        """Each way to find nouns with its languages."""
        by_way: dict[str, list[str]] = {}
        for lang, way in self.nouns.items():
            by_way.setdefault(way, []).append(lang)
        return "; ".join(f"{way} ({', '.join(langs)})" for way, langs in by_way.items())

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each metric, language and perturbation, with intervals."""
        return (effect._asdict() for effect in self.effects)

    def content(self) -> dict[str, Any]:
        return {
            "robustness": [json_object(effect) for effect in self.effects],
            "skipped": self.skipped,
            "impossible": self.skipped,
            "unchanged": self.unchanged,
            "protocol": self.protocol,
            "seed": self.seed,
            **({"nouns": self.nouns} if self.nouns else {}),
            "counts": {"failed": self.failed},
            "signatures": self.signatures,
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        return cls(
            effects=[PerturbationEffect(**numbers_of(effect)) for effect in content["robustness"]],
            # Called `impossible` by caplens 0.1.
            skipped=dict(content["skipped"] if "skipped" in content else content["impossible"]),
            failed=content["counts"]["failed"],
            signatures=dict(content["signatures"]),
            warnings=list(content["warnings"]),
            protocol=content.get("protocol", "gentle"),
            unchanged=dict(content.get("unchanged", {})),
            nouns=dict(content.get("nouns", {})),
            seed=int(content.get("seed", 0)),
        )

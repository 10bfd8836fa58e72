"""Systems side by side: `Comparison` of systems, and `LanguageComparison` of the same in each language."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from caplens.arrays import Floats
from caplens.results.base import Content, Result, ResultRow, floats, json_object, json_values, numbers_of
from caplens.results.metric_names import printed_metric
from caplens.results.table import LEVEL, REPRODUCE, Cell, Table, shown_p, with_interval
from caplens.stats import smallest_p

_SIGNIFICANT, _VERY_SIGNIFICANT = 0.05, 0.01


class SystemScore(NamedTuple):
    value: float
    low: float
    high: float


class SystemContrast(NamedTuple):
    """How much the first system is above the second. `p` is of a paired permutation test, `p_corrected` for a metric's pairs."""

    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float


@dataclass
class Comparison(Result):
    """Scores of several systems on the captions that all of them have.

    Attributes
    ----------
    scores
        Metric -> system -> corpus score with its interval.
    contrasts
        The difference of every two systems, by each metric.
    samples
        How many captions of each system were compared.
    failed
        Captions left out because they could not be scored.
    values
        Metric -> system -> the score of each caption, in the order of `ids`.
    content_hashes
        System -> hashes of the captions and of the references that were scored.
    baseline
        The system that each other one is compared with; None if every two are.
    images
        How many images the captions are about; None in results of caplens 0.1.
    resamples, seed
        Of intervals and tests; None in results of caplens 0.1.
    """

    kind = "comparison"

    systems: list[str]
    scores: dict[str, dict[str, SystemScore]]
    contrasts: list[SystemContrast]
    signatures: dict[str, str]
    samples: int
    correction: str
    failed: int = 0
    warnings: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list, repr=False)
    langs: list[str | None] = field(default_factory=list, repr=False)
    values: dict[str, dict[str, Floats]] = field(default_factory=dict, repr=False)
    content_hashes: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    baseline: str | None = None
    images: int | None = None
    resamples: int | None = None
    seed: int | None = None
    with_intervals: bool = False
    """Whether `paper_tables` has intervals too."""

    def tables(self) -> list[Table]:
        return [self.systems_table(), *([self.differences_table()] if self.contrasts else [])]

    def systems_table(self) -> Table:
        """Rows systems, columns metrics."""
        rows: list[list[Cell]] = [
            [system, *(with_interval(*by_system[system]) for by_system in self.scores.values())] for system in self.systems
        ]
        notes = [
            f"{self.samples:,} captions that all systems have; {LEVEL} intervals by bootstrap over images.",
            REPRODUCE,
            *self.signatures.values(),
        ]
        return Table(["system", *self.scores], rows, notes=notes)

    def differences_table(self) -> Table:
        """Every two systems, by each metric."""
        rows: list[list[Cell]] = [
            [
                contrast.metric,
                f"{contrast.first} − {contrast.second}",
                contrast.difference,
                contrast.low,
                contrast.high,
                shown_p(contrast.p),
                shown_p(contrast.p_corrected),
            ]
            for contrast in self.contrasts
        ]
        columns = ["metric", "systems", "difference", f"{LEVEL} low", f"{LEVEL} high", "p", "corrected p"]
        notes = [
            "p by paired permutation over images, corrected by"
            f" {self._correction_name} for the comparisons of a metric; intervals by paired bootstrap."
        ]
        return Table(columns, rows, notes=notes)

    @property
    def _correction_name(self) -> str:
        return {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}.get(self.correction, self.correction)

    @property
    def separable(self) -> bool:
        """Whether a test of every two systems could have told them apart."""
        pairs = len(self.systems) * (len(self.systems) - 1) / 2
        return self.baseline is None and (self.images is None or pairs * smallest_p(self.images) <= _SIGNIFICANT)

    def paper_tables(self) -> list[Table]:
        """Rows systems, columns metrics, as papers print them: the best of each metric bold, daggers for significance."""
        printed = {metric: printed_metric(metric) for metric in self.scores}
        rows: list[list[Cell]] = [
            [system, *(self._paper_cell(metric, system, printed[metric].scale) for metric in self.scores)]
            for system in self.systems
        ]
        bold = {
            (row, column)
            for column, metric in enumerate(self.scores, 1)
            for row, system in enumerate(self.systems)
            if system in self._best_systems(metric)
        }
        scaled = [metric.name for metric in printed.values() if metric.scale == 1]
        notes = [
            f"{self.samples:,} captions{'' if self.images is None else f' of {self.images:,} images'} that all systems have."
            + (f" Times 100, except {', '.join(scaled)}." if scaled else " Times 100."),
            *self._legend(),
            *([f"In brackets: {LEVEL} intervals by bootstrap over images."] if self.with_intervals else []),
            REPRODUCE,
            *self.signatures.values(),
        ]
        return [Table(["System", *(metric.name for metric in printed.values())], rows, notes=notes, bold=frozenset(bold))]

    def _paper_cell(self, metric: str, system: str, scale: float) -> str:
        value, low, high = (scale * number for number in self.scores[metric][system])
        bounds = f" [{low:.1f}, {high:.1f}]" if self.with_intervals else ""
        return f"{value:.1f}{self._dagger(metric, system)}{bounds}"

    def _best_systems(self, metric: str) -> list[str]:
        """The best of several systems, and those whose score is the same once it is rounded."""
        printed = printed_metric(metric)
        if len(self.systems) < 2 or printed.best == "none":
            return []
        rounded = {system: round(score.value * printed.scale, 1) for system, score in self.scores[metric].items()}
        best = min(rounded.values()) if printed.best == "lowest" else max(rounded.values())
        return [system for system, value in rounded.items() if value == best]

    def _dagger(self, metric: str, system: str) -> str:
        """Marks a system that differs from the baseline, or from the best system."""
        other = self.baseline or next(iter(self._best_systems(metric)), None)
        p = next(
            (c.p_corrected for c in self.contrasts if c.metric == metric and {c.first, c.second} == {system, other}), float("nan")
        )
        return "‡" if p < _VERY_SIGNIFICANT else "†" if p < _SIGNIFICANT else ""

    def _legend(self) -> list[str]:
        if not self.contrasts:
            return []
        other = f"{self.baseline}" if self.baseline is not None else "the best system"
        return [
            "Bold: the best of a metric, and what equals it.",
            f"† p < {_SIGNIFICANT}, ‡ p < {_VERY_SIGNIFICANT}: better or worse than {other}; paired permutation test over images,"
            f" corrected by {self._correction_name} for the {len(self.contrasts) // len(self.scores)} comparisons of a metric.",
        ]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each metric and two systems."""
        for contrast in self.contrasts:
            scores = self.scores[contrast.metric]
            sides = {
                f"{side}{field_}": value
                for side, system in (("first", contrast.first), ("second", contrast.second))
                for field_, value in (("", system), *((f"_{name}", value) for name, value in scores[system]._asdict().items()))
            }
            difference = {name: getattr(contrast, name) for name in ("difference", "low", "high", "p", "p_corrected")}
            yield {"metric": contrast.metric, **sides, **difference}

    def content(self) -> dict[str, Any]:
        return {
            "systems": self.systems,
            "scores": {
                metric: {system: json_object(score) for system, score in by_system.items()}
                for metric, by_system in self.scores.items()
            },
            "contrasts": [json_object(contrast) for contrast in self.contrasts],
            "correction": self.correction,
            "test": "paired permutation over images; the family of a correction is the comparisons of one metric",
            "family": len(self.contrasts) // max(1, len(self.scores)),
            "level": LEVEL,
            **({} if self.resamples is None else {"resamples": self.resamples, "seed": self.seed}),
            **({} if self.baseline is None else {"baseline": self.baseline}),
            "signatures": self.signatures,
            "counts": {
                "samples": self.samples,
                "failed": self.failed,
                **({} if self.images is None else {"images": self.images}),
            },
            "warnings": self.warnings,
            "ids": self.ids,
            **({"lang": self.langs} if any(self.langs) else {}),
            "values": {
                metric: {system: json_values(values) for system, values in by_system.items()}
                for metric, by_system in self.values.items()
            },
            **({"content_hashes": self.content_hashes} if self.content_hashes else {}),
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        _check_names(content)
        return cls(
            systems=list(content["systems"]),
            scores={
                metric: {system: SystemScore(**numbers_of(score)) for system, score in by_system.items()}
                for metric, by_system in content["scores"].items()
            },
            contrasts=[SystemContrast(**numbers_of(contrast)) for contrast in content["contrasts"]],
            signatures=dict(content["signatures"]),
            samples=content["counts"]["samples"],
            correction=content["correction"],
            failed=content["counts"]["failed"],
            warnings=list(content["warnings"]),
            ids=list(content["ids"]),
            langs=list(content.get("lang") or [None] * len(content["ids"])),
            values={
                metric: {system: floats(values) for system, values in by_system.items()}
                for metric, by_system in content["values"].items()
            },
            content_hashes={system: dict(hashes) for system, hashes in content.get("content_hashes", {}).items()},
            baseline=content.get("baseline"),
            images=content["counts"].get("images"),
            resamples=content.get("resamples"),
            seed=content.get("seed"),
        )


class RegionScore(NamedTuple):
    """The mean score of a system on the images of one region."""

    metric: str
    system: str
    region: str
    captions: int
    value: float


@dataclass
class LanguageComparison(Result):
    """Systems compared in each of several languages."""

    kind = "comparison-by-language"

    comparisons: dict[str, Comparison]
    """Language -> comparison."""
    benchmark: str = ""
    """The data set that the references come from."""
    regions: dict[str, list[RegionScore]] = field(default_factory=dict)
    """Language -> scores by the region that images were chosen for."""
    by_region: bool = False
    """Whether `tables` has those by region too."""

    @property
    def warnings(self) -> list[str]:  # type: ignore[override]
        return [f"{lang}: {warning}" for lang, comparison in self.comparisons.items() for warning in comparison.warnings]

    @property
    def failed(self) -> int:
        return sum(comparison.failed for comparison in self.comparisons.values())

    def __getitem__(self, lang: str) -> Comparison:
        return self.comparisons[lang]

    def __iter__(self) -> Iterator[str]:
        """The languages."""
        return iter(self.comparisons)

    def items(self) -> Iterator[tuple[str, Comparison]]:
        return iter(self.comparisons.items())

    def __len__(self) -> int:
        return len(self.comparisons)

    def tables(self) -> list[Table]:
        return [self.language_table(), *(self.region_tables() if self.by_region else [])]

    def region_tables(self) -> list[Table]:
        """For each metric and system: rows languages, columns regions."""
        cells = {
            (score.metric, score.system, lang, score.region): score.value
            for lang, scores in self.regions.items()
            for score in scores
        }
        regions = sorted({region for *_, region in cells})
        tables = []
        for metric, system in dict.fromkeys((metric, system) for metric, system, *_ in cells):
            rows: list[list[Cell]] = [
                [lang, *(cells.get((metric, system, lang, region)) for region in regions)] for lang in self.regions
            ]
            notes = ["Rows are languages of captions, columns the languages of the regions that images were chosen for."]
            tables.append(Table(["lang", *regions], rows, title=f"{metric} of {system}, by language and region", notes=notes))
        return tables

    def language_table(self) -> Table:
        """Rows languages and systems, columns metrics with intervals, and p against the first system."""
        metrics = list(next(iter(self.comparisons.values())).scores)
        several = any(len(comparison.systems) > 1 for comparison in self.comparisons.values())
        rows = [
            [lang, *row] for lang, comparison in self.comparisons.items() for row in _system_rows(comparison, metrics, several)
        ]
        tests = [f"p, {metric}" for metric in metrics] if several else []
        against = next(iter(self.comparisons.values())).baseline or "the first system"
        notes = [
            f"{LEVEL} intervals by bootstrap over images."
            + (f" p against {against}, corrected for the comparisons of a metric." if several else "")
        ]
        signatures = dict.fromkeys(text for comparison in self.comparisons.values() for text in comparison.signatures.values())
        notes += [REPRODUCE, *signatures]
        title = f"{self.benchmark}, by language" if self.benchmark else "By language"
        return Table(["lang", "system", "captions", *metrics, *tests], rows, title=title, notes=notes)

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each language, system and metric."""
        for lang, comparison in self.comparisons.items():
            for metric, scores in comparison.scores.items():
                for system in comparison.systems:
                    about = {"lang": lang, "system": system, "metric": metric, "captions": comparison.samples}
                    yield {**about, **scores[system]._asdict()}

    def content(self) -> dict[str, Any]:
        by_language = {lang: comparison.to_dict() for lang, comparison in self.comparisons.items()}
        regions = {lang: [json_object(score) for score in scores] for lang, scores in self.regions.items()}
        return {"benchmark": self.benchmark, "languages": by_language, **({"regions": regions} if regions else {})}

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        comparisons: Mapping[str, Content] = content["languages"]
        return cls(
            {lang: Comparison.from_dict(comparison) for lang, comparison in comparisons.items()},
            str(content.get("benchmark", "")),
            {lang: [RegionScore(**numbers_of(score)) for score in scores] for lang, scores in content.get("regions", {}).items()},
        )


def _check_names(content: Content) -> None:
    """A file may come from elsewhere: every score is of a system, and every contrast of two of them by a metric that there is."""
    for metric, by_system in content["scores"].items():
        if set(by_system) != set(content["systems"]):
            raise ValueError(f"the scores by {metric} are not those of the systems")
        for score in by_system.values():
            if any(isinstance(value, bool) or not isinstance(value, int | float | None) for value in score.values()):
                raise TypeError(f"a score by {metric} is not a number")
    for contrast in content["contrasts"]:
        if contrast["metric"] not in content["scores"] or not {contrast["first"], contrast["second"]} <= set(content["systems"]):
            raise ValueError("a contrast names a metric or system that there is not")


def _system_rows(comparison: Comparison, metrics: list[str], tested: bool) -> Iterator[list[Cell]]:
    compared = comparison.baseline or comparison.systems[0]
    p_values = {
        (contrast.second if contrast.first == compared else contrast.first, contrast.metric): contrast.p_corrected
        for contrast in comparison.contrasts
        if compared in (contrast.first, contrast.second)
    }
    for system in comparison.systems:
        cells = [with_interval(*comparison.scores[metric][system]) for metric in metrics]
        tests = [shown_p(p_values[system, metric]) if (system, metric) in p_values else "" for metric in metrics]
        yield [system, comparison.samples, *cells, *(tests if tested else [])]

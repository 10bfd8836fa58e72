"""How well metrics agree with people: on a benchmark, or on one's own ratings."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import language_names
from caplens.results.base import Content, Result, ResultRow, floats, json_object, json_values, number, numbers_of
from caplens.results.table import LEVEL, REPRODUCE, Cell, Table, shown_p

UNIT = 100
"""Coefficients and accuracies are reported times 100, as papers print them."""
MEAN = "mean"
"""The measure that is the mean of the others."""
_CONVINCING = 0.01


class Estimate(NamedTuple):
    """One measure of one metric, times 100."""

    value: float
    low: float
    high: float
    published: float | None
    points: int
    """Data points, or comparisons."""
    ties: float | None
    """Of 100 comparisons, those that the metric called even."""


class MetricContrast(NamedTuple):
    """How far apart two metrics are in a measure; `p` is corrected for all the pairs of metrics compared, `p_raw` is not."""

    measure: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_raw: float = float("nan")
    """NaN in results of caplens 0.1."""


class RaterAgreement(NamedTuple):
    """How far raters agree with each other, which bounds how far a metric can agree with them."""

    raters: int
    alpha: float
    """Krippendorff's alpha (interval)."""
    ceiling: dict[str, float]
    """Coefficient -> the mean, over raters, of a rater's correlation with the mean of the others, times 100."""


class PairwiseEstimate(NamedTuple):
    """Pairs of captions of one image that a metric orders as people do, of 100, ties calibrated."""

    accuracy: float
    epsilon: float
    """Scores that differ by at most this count as a tie."""
    pairs: int


@dataclass
class AgreementResult(Result):
    """How well each metric agrees with people.

    Attributes
    ----------
    benchmark
        The name of the benchmark, or of the file with the ratings.
    protocol
        Which rows count, and how ratings are aggregated.
    source
        Where the published values come from.
    results
        Metric -> measure -> estimate.
    contrasts
        The difference of every two metrics, by each measure.
    rows, images, failed, without_image
        Data points, images, captions that could not be scored, and captions whose images are missing.
    ids, captions, scores, human, langs, systems
        Of each data point; `human` has a row of values for each. The last two are empty where no caption names one.
    raters, pairwise, system_level
        For ratings of several people, of several captions per image, and of several systems: agreement between the raters,
        metric -> tie-calibrated pairwise accuracy, and metric -> coefficient -> correlation of the systems' means, times 100.
    """

    kind = "agreement"

    benchmark: str
    protocol: str
    lang: str
    source: str
    results: dict[str, dict[str, Estimate]]
    contrasts: list[MetricContrast]
    signatures: dict[str, str]
    rows: int
    images: int
    failed: int
    without_image: int
    resamples: int
    seed: int
    warnings: list[str]
    ids: list[str] = field(repr=False)
    captions: list[str] = field(repr=False)
    scores: dict[str, Floats] = field(repr=False)
    human: Floats | None = field(default=None, repr=False)
    langs: list[str | None] = field(default_factory=list, repr=False)
    systems: list[str | None] = field(default_factory=list, repr=False)
    content_hashes: dict[str, str] = field(default_factory=dict, repr=False)
    """Of the captions that were judged; empty in results of caplens 0.1."""
    raters: RaterAgreement | None = None
    pairwise: dict[str, PairwiseEstimate] = field(default_factory=dict)
    system_level: dict[str, dict[str, float]] = field(default_factory=dict)
    same_model: list[str] = field(default_factory=list)
    """Metrics whose published values are of the model that they were computed with, or that have no model."""

    @property
    def measures(self) -> list[str]:
        return list(next(iter(self.results.values())))

    @property
    def headline(self) -> str:
        """The measure that metrics are ranked by: the mean where there is one, else the first."""
        return MEAN if MEAN in self.measures else self.measures[0]

    def tables(self) -> list[Table]:
        tables = [self.measures_table()]
        if self.contrasts:
            tables.append(self.significance_table())
        own_ratings = self.own_ratings_table()
        return tables if own_ratings is None else [*tables, own_ratings]

    def measures_table(self) -> Table:
        """One row for each measure and metric, with published values beside."""
        rows = [
            [name, metric, *self.results[metric][name][:4], self.distance(metric, name), *self.results[metric][name][4:]]
            for name in self.measures
            for metric in self.results
        ]
        filled = {place for row in rows for place, cell in enumerate(row) if cell is not None}
        # Accuracies are about comparisons, of which each measure has its own number, and some of which may be ties.
        published, preferences = 5 in filled, 8 in filled
        notes = [
            f"{self.rows:,} {'captions' if preferences else 'data points'} about {self.images:,} images, times 100; intervals by"
            " bootstrap over images.",
            *([f"Published: {self.source}; 'within' is the distance to it, where the model is the same."] if published else []),
            REPRODUCE,
            *self.signatures.values(),
        ]
        columns = ["measure", "metric", "value", f"{LEVEL} low", f"{LEVEL} high", "published", "within", "points", "ties"]
        shown = [*range(5), *sorted(filled & {5, 6}), *((7, 8) if preferences else ())]
        lang = "" if self.lang == "en" else f", captions in {language_names().get(self.lang, 'several languages')}"
        title = f"{self.benchmark}, protocol {self.protocol}{lang}"
        cells: list[list[Cell]] = [[row[place] for place in shown] for row in rows]
        return Table([columns[place] for place in shown], cells, title=title, notes=notes, digits=2)

    def distance(self, metric: str, measure: str) -> float | None:
        """How far a value is from the published one; None where that is of another model."""
        estimate = self.results[metric][measure]
        if estimate.published is None or metric not in self.same_model:
            return None
        return abs(estimate.value - estimate.published)

    def significance_table(self) -> Table:
        """Which metrics agree with people better than which, by the main measure: row minus column, and p."""
        name, metrics = self.headline, list(self.results)
        cells: dict[tuple[str, str], str] = {}
        for contrast in self.contrasts:
            if contrast.measure == name:
                p = shown_p(contrast.p)
                for pair, difference in (
                    ((contrast.first, contrast.second), contrast.difference),
                    ((contrast.second, contrast.first), -contrast.difference),
                ):
                    cells[pair] = "–" if math.isnan(difference) else f"{difference:+.2f} ({p})"
        rows: list[list[Cell]] = [[row, *("" if row == column else cells[row, column] for column in metrics)] for row in metrics]
        pairs = len(metrics) * (len(metrics) - 1) // 2
        smallest = min(1.0, pairs * 2 / (self.resamples + 1))
        notes = [f"Row minus column in {name}, and p by paired bootstrap over images, corrected by Holm."]
        if smallest > _CONVINCING:
            notes.append(f"With {self.resamples} resamples no p can be below {smallest:.3f}; take more.")
        return Table(["metric", *metrics], rows, notes=notes)

    def own_ratings_table(self) -> Table | None:
        """Pairwise accuracy and system-level correlations, where the ratings allow them, and how far the raters agree."""
        coefficients = list(dict.fromkeys(name for by_name in self.system_level.values() for name in by_name))
        notes = []
        if self.raters is not None:
            ceiling = ", ".join(
                f"{name} {'–' if math.isnan(value) else f'{value:.1f}'}" for name, value in self.raters.ceiling.items()
            )
            notes.append(f"{self.raters.raters} raters; Krippendorff's alpha {self.raters.alpha:.3f}.")
            notes.append(f"Human ceiling (each rater against the mean of the others): {ceiling}.")
        if not self.pairwise and not coefficients:
            return Table(["raters", "alpha"], [[self.raters.raters, self.raters.alpha]], notes=notes) if self.raters else None
        rows: list[list[Cell]] = []
        for metric in self.results:
            pairwise = self.pairwise.get(metric)
            systems = [self.system_level.get(metric, {}).get(name) for name in coefficients]
            rows.append([metric, *((pairwise.accuracy, pairwise.pairs) if pairwise else (None, None)), *systems])
        columns = ["metric", "pairwise accuracy", "pairs", *(f"system level {name}" for name in coefficients)]
        notes.append("Times 100. Pairwise accuracy: captions of one image in the order that people give them, ties calibrated.")
        return Table(columns, rows, title="Pairs of captions, systems, raters", notes=notes, digits=2)

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each measure and metric."""
        for name in self.measures:
            for metric, estimates in self.results.items():
                value, low, high, published, points, ties = estimates[name]
                yield {
                    "benchmark": self.benchmark,
                    "protocol": self.protocol,
                    "lang": self.lang,
                    "measure": name,
                    "metric": metric,
                    "value": value,
                    "low": low,
                    "high": high,
                    "published": published,
                    "within": self.distance(metric, name),
                    "points": points,
                    "ties": ties,
                }

    def content(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "protocol": self.protocol,
            "lang": self.lang,
            "unit": f"x{UNIT}",
            "resamples": self.resamples,
            "seed": self.seed,
            "results": {
                metric: {name: json_object(estimate) for name, estimate in estimates.items()}
                for metric, estimates in self.results.items()
            },
            "contrasts": [json_object(contrast) for contrast in self.contrasts],
            "signatures": self.signatures,
            "published": self.source,
            "same_model": self.same_model,
            "counts": {
                "rows": self.rows,
                "images": self.images,
                "failed": self.failed,
                "without_image": self.without_image,
            },
            "warnings": self.warnings,
            "ids": self.ids,
            **{name: column for name, column in (("langs", self.langs), ("systems", self.systems)) if column},
            "scores": {metric: json_values(values) for metric, values in self.scores.items()},
            **({} if self.human is None else {"human": [json_values(row) for row in self.human]}),
            **({"content_hashes": self.content_hashes} if self.content_hashes else {}),
            **({} if self.raters is None else {"raters": _rater_content(self.raters)}),
            **({"pairwise": {metric: json_object(pair) for metric, pair in self.pairwise.items()}} if self.pairwise else {}),
            **({"system_level": _nan_to_null(self.system_level)} if self.system_level else {}),
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        counts, raters = content["counts"], content.get("raters")
        optional = frozenset({"published", "ties"})
        return cls(
            benchmark=str(content["benchmark"]),
            protocol=str(content["protocol"]),
            lang=str(content["lang"]),
            source=content["published"],
            results={
                metric: {name: Estimate(**numbers_of(estimate, optional)) for name, estimate in estimates.items()}
                for metric, estimates in content["results"].items()
            },
            contrasts=[MetricContrast(**numbers_of(contrast)) for contrast in content["contrasts"]],
            signatures=dict(content["signatures"]),
            rows=counts["rows"],
            images=counts["images"],
            failed=counts["failed"],
            without_image=counts["without_image"],
            resamples=content["resamples"],
            seed=content["seed"],
            warnings=list(content["warnings"]),
            ids=list(content["ids"]),
            captions=[],
            scores={metric: floats(values) for metric, values in content["scores"].items()},
            human=np.array([floats(row) for row in content["human"]]) if "human" in content else None,
            langs=list(content.get("langs", ())),
            systems=list(content.get("systems", ())),
            content_hashes=dict(content.get("content_hashes", {})),
            # Files of caplens 0.1 do not say it.
            same_model=list(
                content.get("same_model", [name for name, line in content["signatures"].items() if "|model:" not in line])
            ),
            raters=None if raters is None else _raters_from(raters),
            pairwise={
                metric: PairwiseEstimate(**numbers_of(estimate)) for metric, estimate in content.get("pairwise", {}).items()
            },
            system_level={
                metric: {name: number(value) for name, value in by_name.items()}
                for metric, by_name in content.get("system_level", {}).items()
            },
        )


def _rater_content(raters: RaterAgreement) -> dict[str, Any]:
    return {**json_object(raters), "ceiling": _nan_to_null({"": raters.ceiling})[""]}


def _raters_from(content: Content) -> RaterAgreement:
    ceiling = {name: number(value) for name, value in content["ceiling"].items()}
    return RaterAgreement(int(content["raters"]), number(content["alpha"]), ceiling)


def _nan_to_null(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float | None]]:
    return {key: {name: None if math.isnan(value) else value for name, value in row.items()} for key, row in table.items()}


def language_table(results: Sequence[AgreementResult]) -> Table:
    """One benchmark in several languages: one column each, with published values in brackets, and the mean over them."""
    first = results[0]
    estimates = _shared_estimates(results)
    rows = [_language_row(name, metric, by_language) for (name, metric), by_language in estimates.items()]
    published = any(estimate.published is not None for by_language in estimates.values() for estimate in by_language)
    sources = list(dict.fromkeys(result.source for result in results if result.source))
    return Table(
        ["measure", "metric", *(result.lang for result in results), "overall"],
        rows,
        title=f"{first.benchmark}, protocol {first.protocol}, by language",
        notes=[
            "Times 100; overall is the mean of the languages. Intervals, ties and signatures are in the JSON.",
            *([f"In brackets: {'; '.join(sources)}."] if published else []),
        ],
        digits=1,
    )


def _shared_estimates(results: Sequence[AgreementResult]) -> dict[tuple[str, str], list[Estimate]]:
    """(measure, metric) -> the estimate of each result, of those that all results have."""
    metrics = [metric for metric in results[0].results if all(metric in result.results for result in results)]
    measures = [name for name in results[0].measures if all(name in result.measures for result in results)]
    return {(name, metric): [result.results[metric][name] for result in results] for name in measures for metric in metrics}


def _language_row(measure: str, metric: str, estimates: Sequence[Estimate]) -> list[Cell]:
    overall = sum(estimate.value for estimate in estimates) / len(estimates)
    if all(estimate.published is None for estimate in estimates):
        return [measure, metric, *(estimate.value for estimate in estimates), overall]
    shown = [
        f"{estimate.value:.1f}" + ("" if estimate.published is None else f" ({estimate.published})") for estimate in estimates
    ]
    return [measure, metric, *shown, f"{overall:.1f}"]


def protocol_table(results: Sequence[AgreementResult]) -> Table:
    """How the ranking of metrics changes with the way ratings are aggregated: value and rank."""
    name = results[0].headline
    rows: list[list[Cell]] = []
    for metric in dict.fromkeys(metric for result in results for metric in result.results):
        cells: list[Cell] = []
        for result in results:
            if metric not in result.results:
                cells.append(None)
                continue
            values = {other: estimates[name].value for other, estimates in result.results.items()}
            rank = 1 + sum(value > values[metric] for value in values.values())
            cells.append(f"{values[metric]:.2f} ({rank})")
        rows.append([metric, *cells])
    return Table(
        ["metric", *(result.protocol for result in results)],
        rows,
        title=f"{results[0].benchmark} ({results[0].lang}), {name} by protocol",
        notes=["Times 100, and in brackets the metric's rank among these."],
    )

"""Benchmarks of ratings: people rated captions, and a score is correlated with their ratings."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from caplens.arrays import Flags, Floats
from caplens.benchmarks.base import Benchmark, BenchmarkData, Measured
from caplens.stats import bootstrap, get_coefficient


@dataclass(frozen=True)
class RatedSamples(BenchmarkData):
    """Captions with a human value each, or a row of them where people are kept apart."""

    human: Floats
    digits: int | None = None
    """To how many digits scores are rounded before they are correlated; None for all."""
    raters: Floats | None = None
    """A row for each caption and a column for each rater, where the data set tells raters apart."""


class RatingBenchmark(Benchmark[RatedSamples]):
    """People rated captions; a score is correlated with their ratings."""

    coefficients: tuple[str, ...] = ("tau-c", "tau-b", "spearman", "pearson")
    """The first is the one papers use."""

    def judge(self, loaded: RatedSamples, values: Floats, scored: Flags, resamples: int, seed: int) -> dict[str, Measured]:
        human, scores = loaded.human[scored], values[scored]
        if loaded.digits is not None:
            scores = scores.round(loaded.digits)
        groups = [sample.group for sample, kept in zip(loaded.samples, scored, strict=True) if kept]
        measures = {}
        for name in self.coefficients:
            coefficient = get_coefficient(name)
            drawn = bootstrap(coefficient, scores, human, groups, resamples, seed)
            measures[name] = Measured(coefficient(scores, human), drawn, len(scores))
        return measures


AGGREGATIONS = {
    "expanded": "each rating is a data point (what papers report)",
    "mean": "the mean of a caption's ratings",
    "median": "the median of a caption's ratings",
}


def aggregate(ratings: Sequence[float], protocol: str) -> list[float]:
    """The data points that a caption's ratings make."""
    return {"expanded": list(ratings), "mean": [mean(ratings)], "median": [median(ratings)]}[protocol]

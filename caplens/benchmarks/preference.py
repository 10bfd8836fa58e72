"""Benchmarks that put captions against each other: a score is right where it prefers what people prefer.

Right means strictly greater: a score that gives two captions the same value has not told them apart. How often that happens is
reported beside each accuracy. A benchmark may let ties count half instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.benchmarks.base import Benchmark, BenchmarkData, Measured
from caplens.errors import InputError
from caplens.results.agreement import MEAN
from caplens.stats.arrays import group_numbers
from caplens.stats.resampling import draws_of_groups


class Trial(NamedTuple):
    """One comparison. It is won where the better side of every constraint scores higher than the worse one."""

    measure: str
    group: str
    """What it is about: trials of one image are resampled together."""
    constraints: tuple[tuple[Sequence[int], Sequence[int]], ...]
    """Rows of the samples: (better, worse)."""

    def rows(self) -> Iterator[int]:
        return (row for constraint in self.constraints for side in constraint for row in side)


def prefer(measure: str, group: str, better: int, worse: int) -> Trial:
    """The usual trial: one caption against another."""
    return Trial(measure, group, (((better,), (worse,)),))


@dataclass(frozen=True)
class PreferenceData(BenchmarkData):
    trials: list[Trial]


class PreferenceBenchmark(Benchmark[PreferenceData]):
    """A benchmark of trials; its measures are accuracies."""

    averaged: ClassVar[bool] = False
    """Whether papers report the mean of the measures too."""
    tie: ClassVar[float] = 0.0
    """What a tie counts."""

    def better(self, scores: list[float]) -> float:
        """What the scores of a better side with several rows count as."""
        return max(scores)

    def worse(self, scores: list[float]) -> float:
        return max(scores)

    def judge(self, loaded: PreferenceData, values: Floats, scored: Flags, resamples: int, seed: int) -> dict[str, Measured]:
        has_score, scores = scored.tolist(), values.tolist()
        trials = [trial for trial in loaded.trials if all(has_score[row] for row in trial.rows())]
        if not trials:
            raise InputError(f"{self.name}: no comparison has a score on both sides.")
        lead = np.array([self._lead(trial, scores) for trial in trials])
        groups, group_count = group_numbers([trial.group for trial in trials], len(trials))
        names = list(dict.fromkeys(trial.measure for trial in loaded.trials))
        places = {name: place for place, name in enumerate(names)}
        cells = groups * len(names) + np.array([places[trial.measure] for trial in trials])
        wins, ties, counts = (
            np.bincount(cells, weights, group_count * len(names)).reshape(group_count, len(names))
            for weights in ((lead > 0) + self.tie * (lead == 0), lead == 0, np.ones(len(lead)))
        )
        # All measures share the draws of images, so that their mean has an interval too.
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = np.concatenate([(draw @ wins) / (draw @ counts) for draw in draws_of_groups(group_count, resamples, seed)])
            value, tied = wins.sum(0) / counts.sum(0), ties.sum(0) / counts.sum(0)
        points = counts.sum(0).astype(int).tolist()
        measures = {
            name: Measured(float(value[place]), drawn[:, place], points[place], float(tied[place]))
            for name, place in places.items()
            if points[place]
        }
        return self._with_mean(measures)

    def _with_mean(self, measures: dict[str, Measured]) -> dict[str, Measured]:
        if not self.averaged or len(measures) < 2:
            return measures
        return {**measures, MEAN: _mean_measure(list(measures.values()))}

    def _lead(self, trial: Trial, scores: Sequence[float]) -> float:
        """By how much the better side scores higher, in the constraint where that is least."""
        return min(
            self.better([scores[row] for row in better]) - self.worse([scores[row] for row in worse])
            for better, worse in trial.constraints
        )


def _mean_measure(parts: Sequence[Measured]) -> Measured:
    return Measured(
        float(np.mean([part.value for part in parts])),
        np.mean([part.drawn for part in parts], axis=0),
        sum(part.points for part in parts),
        float(np.mean([part.ties for part in parts])),
    )

"""Benchmarks that put captions against each other: a score is right where it prefers what people prefer.

Right means strictly greater: a score that gives two captions the same value has not told them apart. How often that happens is
reported beside each accuracy. A benchmark may let ties count half instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from caplens.bench.base import Benchmark, Loaded, Measured, Rows
from caplens.errors import InputError
from caplens.stats.arrays import Floats, group_numbers
from caplens.stats.bootstrap import draws_of_groups

MEAN = "mean"


class Trial(NamedTuple):
    """One comparison. It is won where the better side of every clause scores higher than the worse one."""

    measure: str
    group: str
    """What it is about: trials of one image are resampled together."""
    clauses: tuple[tuple[Sequence[int], Sequence[int]], ...]
    """Rows of the samples: (better, worse)."""


def prefer(measure: str, group: str, better: int, worse: int) -> Trial:
    """The usual trial: one caption against another."""
    return Trial(measure, group, (((better,), (worse,)),))


@dataclass(frozen=True)
class Contests(Loaded):
    trials: list[Trial]


class Contest(Benchmark[Contests]):
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

    def judge(self, loaded: Contests, values: Floats, scored: Rows, resamples: int, seed: int) -> dict[str, Measured]:
        known, score = scored.tolist(), values.tolist()
        held = [
            trial for trial in loaded.trials if all(known[row] for clause in trial.clauses for side in clause for row in side)
        ]
        if not held:
            raise InputError(f"{self.name}: no comparison has a score on both sides.")
        leads = [
            min(
                self.better([score[row] for row in first]) - self.worse([score[row] for row in second])
                for first, second in clauses
            )
            for _, _, clauses in held
        ]
        lead = np.array(leads)
        groups, group_count = group_numbers([trial.group for trial in held], len(held))
        names = list(dict.fromkeys(trial.measure for trial in loaded.trials))
        places = {name: place for place, name in enumerate(names)}
        measure = np.array([places[trial.measure] for trial in held])
        cells = groups * len(names) + measure
        wins, ties, counts = (
            np.bincount(cells, some, group_count * len(names)).reshape(group_count, len(names))
            for some in ((lead > 0) + self.tie * (lead == 0), lead == 0, np.ones(len(lead)))
        )
        # All measures share the draws of images, so that their mean has an interval too.
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = np.concatenate([(draw @ wins) / (draw @ counts) for draw in draws_of_groups(group_count, resamples, seed)])
            value, tied = wins.sum(0) / counts.sum(0), ties.sum(0) / counts.sum(0)
        found = {
            name: Measured(float(value[place]), drawn[:, place], int(counts[:, place].sum()), float(tied[place]))
            for name, place in places.items()
            if counts[:, place].any()
        }
        if self.averaged and len(found) > 1:
            parts = list(found.values())
            found[MEAN] = Measured(
                float(np.mean([part.value for part in parts])),
                np.mean([part.drawn for part in parts], axis=0),
                sum(part.points for part in parts),
                float(np.mean([part.ties for part in parts])),
            )
        return found

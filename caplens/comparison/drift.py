"""Two runs whose captions are not the same: how their scores differ, metric by metric and language by language."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats
from caplens.data.languages import base_language
from caplens.errors import InputError
from caplens.results.calibration import same_scale
from caplens.results.drift import ALL, Drift, DriftCounts, DriftResult
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES, holm
from caplens.stats.shift import Shift, measure_shift

_PERCENTS = np.arange(101)


def compare_runs(
    old: ScoreResult,
    new: ScoreResult,
    old_name: str = "old",
    new_name: str = "new",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> DriftResult:
    """How the scores of the new run differ from those of the old one, for each metric of both.

    Raises
    ------
    InputError
        If the runs have no metric in common.
    """
    metrics = [name for name in old.metrics if name in new.metrics]
    if not metrics:
        raise InputError(
            f"the runs have no metric in common: {', '.join(old.metrics)} in {old_name}, {', '.join(new.metrics)} in {new_name}."
        )
    result = DriftResult([], old_name, new_name)
    for metric in metrics:
        if not same_scale(old[metric].signature, new[metric].signature):
            result.warnings.append(
                f"{metric}: the runs were scored differently ({old[metric].signature} and {new[metric].signature}), so that a"
                " difference may come from that."
            )
        result.drifts += _drifts_of(metric, old, new, resamples, seed)
    repeated = any(len(set(run.ids)) < len(run.ids) for run in (old, new))
    # Ids that repeat within a run are names of images, which two runs may well share.
    if (shared := len(set(old.ids) & set(new.ids))) and not repeated:
        result.warnings.append(
            f"{shared:,} ids are in both runs. Where they are the same captions, 'caplens compare' tests them in pairs, which"
            " notices smaller differences."
        )
    return result


def _drifts_of(metric: str, old: ScoreResult, new: ScoreResult, resamples: int, seed: int) -> list[Drift]:
    sides = [_ScoredRows(result, metric) for result in (old, new)]
    common = sorted(set(sides[0].langs.tolist()) & set(sides[1].langs.tolist()))
    langs = [ALL, *(common if len(common) > 1 else [])]
    parts = [tuple(side.of(lang) for side in sides) for lang in langs]
    shifts = [_shift(before, after, resamples, seed) for before, after in parts]
    p_values = np.array([[shift.level_p, shift.shape_p] for shift in shifts]).ravel()
    corrected = p_values.copy()
    valid = ~np.isnan(p_values)
    corrected[valid] = holm(p_values[valid])
    return [
        Drift(
            metric, lang, _counts(before), _counts(after), shift.difference, shift.low, shift.high, shift.higher, float(p),
            float(shape_p), _quantiles(before), _quantiles(after),
        )
        for lang, (before, after), shift, (p, shape_p) in zip(langs, parts, shifts, corrected.reshape(-1, 2), strict=True)
    ]  # fmt: skip


class _ScoredRows:
    """The rows of a run that have a score."""

    def __init__(self, result: ScoreResult, metric: str) -> None:
        values = result[metric].values
        rows = np.flatnonzero(~np.isnan(values))
        if not len(rows):
            raise InputError(f"no caption of one of the runs has a score of {metric}.")
        self.values = values[rows]
        self.langs: NDArray[np.str_] = np.array([base_language(result.langs[row] or "en") for row in rows])
        self.groups = np.array([result.groups[row] for row in rows], dtype=object)

    def of(self, lang: str) -> tuple[Floats, Sequence[str]]:
        kept = np.ones(len(self.values), dtype=bool) if lang == ALL else self.langs == lang
        return self.values[kept], self.groups[kept].tolist()


ScoredPart = tuple[Floats, Sequence[str]]


def _shift(old: ScoredPart, new: ScoredPart, resamples: int, seed: int) -> Shift:
    try:
        return measure_shift(old[0], new[0], old[1], new[1], resamples, seed)
    except InputError:
        # Too few images for a test: the means are still shown.
        nan = float("nan")
        return Shift(float(new[0].mean() - old[0].mean()), nan, nan, nan, nan, nan)


def _counts(part: ScoredPart) -> DriftCounts:
    return DriftCounts(len(part[0]), float(part[0].mean()))


def _quantiles(part: ScoredPart) -> tuple[float, ...]:
    return tuple(np.percentile(part[0], _PERCENTS).tolist())

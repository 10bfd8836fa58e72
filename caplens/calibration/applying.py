"""From scores to what they mean: percentiles and intervals of ratings, by the calibration that fits their signature."""

from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats
from caplens.backbones.mini import DEFAULT
from caplens.data.files import Place
from caplens.data.formats.json_document import parse_json
from caplens.data.languages import base_language
from caplens.errors import InputError
from caplens.results.calibration import Calibration, MetricLevels
from caplens.results.levels import ScoreLevels
from caplens.results.loading import load_results, result_from_dict
from caplens.results.scores import ScoreResult

_BUILT_IN = f"{DEFAULT}.json"
CalibrationChoice = Calibration | str | PathLike[str] | None
"""A calibration or its file; by default, that of the built-in model where it fits."""


def add_levels(result: ScoreResult, calibration: CalibrationChoice = None, lang: str | None = None) -> None:
    """Add to a result where its scores stand, for every metric that the calibration fits.

    Raises
    ------
    InputError
        If a calibration was given, and fits none of the metrics.
    """
    opened = open_calibration(calibration) if calibration is not None else _built_in_for(result)
    if opened is None:
        return
    langs = np.array([base_language(tag or lang or "en") for tag in result.langs])
    for name, scores in result.metrics.items():
        levels = opened.levels_for(name, scores.signature)
        if levels is not None:
            result.levels[name] = _levels_of(levels, scores.values, langs)
            result.calibration = opened.about
    if calibration is not None and not result.levels:
        raise InputError(_mismatch(opened, result))


def open_calibration(calibration: CalibrationChoice) -> Calibration:
    """The calibration itself, or that in a file; by default, that of the built-in model."""
    if calibration is None:
        return built_in_calibration()
    if isinstance(calibration, Calibration):
        return calibration
    opened = load_results(calibration)
    if not isinstance(opened, Calibration):
        raise InputError(f"{calibration}: this is a result of 'caplens {opened.kind}', not of 'caplens calibrate'.")
    return opened


@cache
def built_in_calibration() -> Calibration:
    """That of caplens-mini, on photos that it was not trained on."""
    text = files("caplens.calibration").joinpath(_BUILT_IN).read_text(encoding="utf-8")
    calibration = result_from_dict(parse_json(text, Place(Path(_BUILT_IN))))
    assert isinstance(calibration, Calibration)
    return calibration


def _built_in_for(result: ScoreResult) -> Calibration | None:
    """Without reading it for scores of other models."""
    fits = any(f"|model:{DEFAULT}@" in scores.signature for scores in result.metrics.values())
    return built_in_calibration() if fits else None


def _levels_of(levels: MetricLevels, values: Floats, langs: NDArray[np.str_]) -> ScoreLevels:
    chance, good = np.full(len(values), np.nan), np.full(len(values), np.nan)
    for code, of_language in levels.languages.items():
        rows = langs == code
        chance[rows], good[rows] = (one.percentile(values[rows]) for one in (of_language.chance, of_language.good))
    if levels.ratings is None:
        return ScoreLevels(chance, good)
    return ScoreLevels(chance, good, *levels.ratings.interval(values))


def _mismatch(calibration: Calibration, result: ScoreResult) -> str:
    ours = {name: scores.signature for name, scores in result.metrics.items()}
    shared = next((name for name in ours if name in calibration.metrics), None)
    if shared is None:
        return (
            f"the calibration is of {', '.join(calibration.metrics)}, and none of these was scored. Calibrate {', '.join(ours)}."
        )
    return (
        f"the calibration is of other scores: {calibration.metrics[shared].signature} is not on the scale of {ours[shared]}."
        " Calibrate with the same model and options."
    )

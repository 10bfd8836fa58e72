"""The level of chance and that of good captions: scores of captions with the images of others, and with their own."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.scoring import run_metrics
from caplens.progress import track
from caplens.results.calibration import Calibration, LanguageLevels, MetricLevels
from caplens.results.scores import ScoreResult
from caplens.stats.conformal import ConformalBounds, conformal_bounds
from caplens.stats.percentiles import Distribution

DRAWS = 5
"""Other images that each caption is scored with."""
FEWEST = 20
"""Captions, and images, that a language needs."""


def measure_levels(
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    lang: str | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    about: str = "",
) -> Calibration:
    """The levels of metrics on good captions, language by language.

    Parameters
    ----------
    samples
        Captions that are known to be good.
    metrics
        What scores them.
    lang
        The language of captions that name none.
    draws
        How many other images each caption is scored with.
    seed
        Of the choice of these.
    about
        What the captions are, in a few words.

    Returns
    -------
    Calibration
        Languages with too few captions or images are left out, with a warning.

    Raises
    ------
    InputError
        If no language has enough captions.
    """
    by_language = _by_language(samples, lang)
    kept = {code: rows for code, rows in by_language.items() if len({sample.group for sample in rows}) >= FEWEST}
    if not kept:
        raise InputError(f"a level needs captions of {FEWEST} images in one language; there are too few.")
    good, langs = list(chain(*kept.values())), np.array([code for code, rows in kept.items() for _ in rows])
    own = run_metrics(good, metrics)
    generator = np.random.default_rng(seed)
    others = [
        run_metrics(chain(*(with_other_images(rows, generator) for rows in kept.values())), metrics)
        for _ in track(range(draws), "scoring with other images", draws)
    ]
    warnings = [*own.warnings, *(f"{code}: too few images for its levels." for code in by_language if code not in kept)]
    return Calibration(
        {name: _levels_of(name, own, others, langs) for name in own.metrics},
        {code: _lengths_of(rows) for code, rows in kept.items()},
        about,
        list(dict.fromkeys(warnings)),
    )


def _by_language(samples: Iterable[Sample], lang: str | None) -> dict[str, list[Sample]]:
    by_language: dict[str, list[Sample]] = {}
    for sample in samples:
        if not sample.invalid:
            by_language.setdefault(base_language(sample.lang or lang or "en"), []).append(sample)
    return by_language


def _lengths_of(samples: Sequence[Sample]) -> Distribution:
    """How many characters captions have."""
    return Distribution.of(np.array([float(len((sample.caption or "").strip())) for sample in samples]))


def with_other_images(samples: Sequence[Sample], generator: np.random.Generator) -> list[Sample]:
    """The captions, each with the image, video and references of a random other image of these; every image is used once."""
    by_group: dict[str, Sample] = {}
    for sample in samples:
        by_group.setdefault(sample.group, sample)
    order = generator.permutation(np.array(list(by_group), dtype=object)).tolist()
    next_group = dict(zip(order, [*order[1:], order[0]], strict=True))
    others = (by_group[next_group[sample.group]] for sample in samples)
    return [
        replace(sample, image=other.image, video=other.video, references=other.references)
        for sample, other in zip(samples, others, strict=True)
    ]


def _levels_of(name: str, own: ScoreResult, others: Sequence[ScoreResult], langs: NDArray[np.str_]) -> MetricLevels:
    chance = np.stack([other[name].values for other in others])
    by_language = {}
    for code in dict.fromkeys(langs.tolist()):
        of_language = langs == code
        by_language[code] = LanguageLevels(
            Distribution.of(chance[:, of_language].ravel()), Distribution.of(own[name].values[of_language])
        )
    return MetricLevels(own[name].signature, by_language)


def with_rating_bounds(
    calibration: Calibration, rated: Iterable[Sample], metrics: Sequence[Metric], coverage: float, seed: int = 0
) -> Calibration:
    """The calibration with what ratings captions with a score get, by split conformal prediction."""
    samples = [sample for sample in rated if sample.ratings and not sample.invalid]
    if not samples:
        raise InputError("none of the rated captions has 'ratings'.")
    scores = run_metrics(samples, metrics)
    ratings = np.array([float(np.mean(sample.rating_values)) for sample in samples])
    levels = {
        name: replace(calibration.metrics[name], ratings=_bounds(scores, name, ratings, coverage, seed))
        for name in scores.metrics
    }
    return replace(calibration, metrics={**calibration.metrics, **levels})


def _bounds(result: ScoreResult, name: str, ratings: Floats, coverage: float, seed: int) -> ConformalBounds:
    scored = np.flatnonzero(~np.isnan(result[name].values))
    groups = [result.groups[row] for row in scored]
    return conformal_bounds(result[name].values[scored], ratings[scored], groups, coverage, seed)

"""Measuring what scores mean."""

from pathlib import Path
from typing import Unpack

from caplens.api.metrics import Metrics, metrics_of
from caplens.calibration.levels import DRAWS, measure_levels, with_rating_bounds
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.results.calibration import Calibration

COVERAGE = 0.9


def calibrate(
    samples: Captions,
    metrics: Metrics | None = None,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    rated: Captions | None = None,
    coverage: float = COVERAGE,
    draws: int = DRAWS,
    seed: int = 0,
    about: str | None = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> Calibration:
    """Measure, language by language, the level of chance and that of good captions.

    Parameters
    ----------
    samples
        Captions that are known to be good, as `score` takes them: those of people, say. A language needs 20 images; for stable
        percentiles, a few hundred.
    metrics, references, images, options, **keywords
        As for `score`. Scores on the same scale, which is what the signature says, can be read by the calibration.
    rated
        Captions with `ratings`, good and bad ones, joined with the same references and images. With these, every score has an
        interval of ratings too.
    coverage
        The share of ratings that such an interval contains (split conformal prediction).
    draws
        How many other images each caption is scored with, for the level of chance.
    seed
        Of the choice of these, and of the split of rated images into halves.
    about
        What the captions are, in a few words; by default, the name of their file.

    Returns
    -------
    Calibration
        To pass as `calibration=` to `score`, `check` and `filter`, or to save as JSON.

    Raises
    ------
    InputError
        If something that was passed cannot be used, or no language has enough images.

    Examples
    --------
    >>> levels = caplens.calibrate("good.jsonl", ["clipscore"], images="photos")  # doctest: +SKIP
    >>> result = caplens.score("captions.jsonl", ["clipscore"], images="photos", calibration=levels)  # doctest: +SKIP
    >>> result.levels["clipscore"].chance  # doctest: +SKIP
    """
    options = ScoringOptions.of(options, **keywords)
    built = metrics_of("score", metrics, images, options)
    if about is None:
        about = Path(samples).stem if isinstance(samples, str | Path) else ""
    good = read_captions(samples, references, images, options.lang)
    calibration = measure_levels(good, built, options.lang, draws, seed, about)
    if rated is None:
        return calibration
    return with_rating_bounds(calibration, read_captions(rated, references, images, options.lang), built, coverage, seed)

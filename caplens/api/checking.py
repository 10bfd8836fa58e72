"""Finding captions that are bad."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from caplens.api.captioning import BEAMS
from caplens.calibration.applying import CalibrationChoice
from caplens.calibration.check import check_captions
from caplens.calibration.suggestions import with_suggestions
from caplens.captioners import Captioner, SearchOptions, open_captioner
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.errors import CaplensError
from caplens.metrics.clipscore import ClipScore
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.results.check import CheckResult
from caplens.text.identification import LanguageModel
from caplens.translation.store import HypothesisStore


def check(
    samples: Captions,
    *,
    images: ImagesInput = None,
    references: ReferencesInput = None,
    calibration: CalibrationChoice = None,
    language_model: LanguageModel | None = None,
    suggest: str | Captioner | None = None,
    seed: int = 0,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> CheckResult:
    """Find captions that are bad, and say why.

    Parameters
    ----------
    samples, references, images, options, **keywords
        As for `score`. Captions without an image are judged by their text alone.
    calibration
        What `calibrate` returned, or its file: the levels of CLIPScore with the model. caplens-mini has its own; for another
        model they are measured on these captions.
    language_model
        What identifies languages; by default py3langid, where it is installed.
    suggest
        A captioner, such as `caplens-mini-captioner`, that says what the images of bad captions seem to show.
    seed
        Of what is drawn at random.

    Returns
    -------
    CheckResult
        The captions, worst first, each with a verdict (fix, look, fine) and reasons.

    Raises
    ------
    InputError
        If something that was passed cannot be used.

    Examples
    --------
    >>> result = caplens.check({"1": "IMG_2041.jpg", "2": "A dog runs through the snow."}, lang="en")
    >>> [(caption.id, str(caption.verdict)) for caption in result]
    [('1', 'fix'), ('2', 'fine')]
    """
    options = ScoringOptions.of(options, **keywords)
    joined = list(read_captions(samples, references, images, options.lang))
    metric = ClipScore.from_options(options)
    folder = Path(images).absolute() if isinstance(images, str | PathLike) else None
    result = check_captions(joined, metric, options.lang, calibration, language_model, seed, folder)
    if suggest is None:
        return result
    captioner = open_captioner(suggest, SearchOptions(BEAMS), options.load_options()) if isinstance(suggest, str) else suggest
    try:
        return with_suggestions(result, captioner, HypothesisStore.beside_vectors(options.store, options.keep_store))
    except CaplensError as error:
        # A server that is down does not cost the check.
        return replace(result, warnings=[*result.warnings, f"no suggestions: {error}"])

"""Fitting what a metric needs before it can score."""

from typing import Unpack

from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.metrics.mid import fit_pairs
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.pair_statistics import PairStatistics


def fit_mid(
    samples: Captions,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> PairStatistics:
    """Fit the Gaussians of MID on pairs of images and captions.

    Parameters
    ----------
    samples, references, images
        As for `caplens.score`. The pairs are an image and each of its references, or its caption where it has none.
    options, **keywords
        How they are encoded: `model`, `lang`, `prompt`, … as a `ScoringOptions`, or one by one.

    Returns
    -------
    PairStatistics
        To pass as `mid=` to `caplens.score`; `save` writes them to a file.

    Raises
    ------
    InputError
        If something that was passed cannot be used, or there are no pairs.

    Examples
    --------
    >>> statistics = caplens.fit_mid("train.jsonl", images="photos")  # doctest: +SKIP
    >>> caplens.score("captions.jsonl", ["mid"], images="photos", mid=statistics)  # doctest: +SKIP
    """
    options = ScoringOptions.of(options, **keywords)
    joined = read_captions(samples, references, images, options.lang)
    return fit_pairs(joined, options.engine(), options.prompt, options.lang)

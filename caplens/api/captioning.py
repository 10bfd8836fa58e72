"""Captioning images."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from caplens.api.metrics import Metrics, metrics_of
from caplens.captioners.base import Captioner, SearchOptions
from caplens.captioners.captioning import CaptioningOptions, CaptioningReport, caption_samples, wanted_captions
from caplens.captioners.mini import DEFAULT
from caplens.captioners.registry import open_captioner
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.translation.store import HypothesisStore

BEAMS = 3
_BATCH = 16


def caption(
    samples: Captions,
    captioner: str | Captioner = DEFAULT,
    *,
    langs: Sequence[str] = (),
    references: ReferencesInput = None,
    images: ImagesInput = None,
    nbest: int = 1,
    rerank: Metrics | None = None,
    search: SearchOptions | None = None,
    batch: int = _BATCH,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> tuple[list[Sample], CaptioningReport]:
    """Caption images, and choose the best of several captions of each by any metric.

    Parameters
    ----------
    samples
        A folder of photos, or samples with images as `score` takes them. Captions that they have are replaced; references stay.
    captioner
        `caplens-mini-captioner`, the folder of a captioner that caplens trained, `hf:ORG/NAME`, `vit-mt5:FOLDER`,
        `endpoint:URL,model=NAME`, that of another package, or a `Captioner`.
    langs
        The languages of captions; without any, that of each sample, or English.
    references, images
        As for `score`.
    nbest
        Captions of each image that the captioner is asked for.
    rerank
        The metric by which one of them is chosen, such as `clipscore`; without, the most probable.
    search
        Beams, length, prompt and seed.
    batch
        Images at a time.
    options, **keywords
        How a metric scores and a model is loaded; see `score`. Captions are kept where vectors are.

    Returns
    -------
    list of Sample, CaptioningReport
        The samples with captions, and what became of the images.

    Raises
    ------
    InputError
        If the captioner cannot be opened or does not write a language, or there are no images.

    Examples
    --------
    >>> captioned, report = caplens.caption("photos", langs=["de", "ja"])  # doctest: +SKIP
    >>> captioned[0].caption  # doctest: +SKIP
    'ein hund läuft durch den schnee'
    """
    options = ScoringOptions.of(options, **keywords)
    chosen = metrics_of("score", rerank, images, options) if rerank is not None else []
    if len(chosen) > 1:
        raise InputError(f"captions are chosen by one metric, not by {len(chosen)}. Name one.")
    store = HypothesisStore.beside_vectors(options.store, options.keep_store)
    settings = CaptioningOptions(nbest, chosen[0] if chosen else None, batch, store)
    if isinstance(captioner, str):
        captioner = open_captioner(captioner, search or SearchOptions(BEAMS), options.load_options())
    source = samples
    if isinstance(samples, str | PathLike):
        source = list(SampleFile(samples, caption_required=False))
        if Path(samples).is_dir():
            # As in a file of captions, images are named relative to their folder.
            source = [replace(sample, image=sample.id) for sample in source]
            images = samples if images is None else images
    originals = wanted_captions(read_captions(source, references, None, None), langs)
    with_images = list(read_captions(originals, None, images, None))
    captioned, report = caption_samples(with_images, captioner, settings)
    # The output names images as the input does.
    return [replace(new, image=old.image) for old, new in zip(originals, captioned, strict=True)], report

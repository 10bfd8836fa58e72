"""Captions of many images: each image once by content, results kept, and the best of several chosen by any metric."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from caplens.captioners.base import Captioner, ImageCaptions
from caplens.data.languages import base_language
from caplens.data.media import ImageSource
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, decode, image_key
from caplens.errors import CaplensError, InputError
from caplens.metrics.base import Metric, missing_input
from caplens.metrics.scoring import run_metrics
from caplens.progress import logger, note_kept, track
from caplens.terminal import visible
from caplens.translation.store import HypothesisStore
from caplens.version import __version__

_BATCH = 16
"""Images that are captioned, and kept, together."""
_MOST_CAPTIONS = 100


@dataclass(frozen=True)
class CaptioningOptions:
    """How images are captioned.

    Attributes
    ----------
    nbest
        Captions of each image.
    rerank
        The metric by which one of them is chosen; without, the most probable.
    batch
        Images at a time.
    store
        Where captions are kept.
    """

    nbest: int = 1
    rerank: Metric | None = None
    batch: int = _BATCH
    store: HypothesisStore = field(default_factory=HypothesisStore)

    def __post_init__(self) -> None:
        if not 1 <= self.nbest <= _MOST_CAPTIONS:
            raise InputError(f"between 1 and {_MOST_CAPTIONS:,} captions of each image can be asked for, not {self.nbest}.")
        if self.batch < 1:
            raise InputError(f"'batch' must be at least 1, not {self.batch}.")
        if self.rerank is not None and self.rerank.needs_all_captions:
            raise InputError(f"{self.rerank.name} needs all captions at once, and cannot choose among those of an image.")


@dataclass
class CaptioningReport:
    """What became of the images.

    Attributes
    ----------
    images
        Images, times languages.
    reused
        How many of them had been captioned before.
    changed
        How many have another caption than the most probable one.
    gain
        How much the mean score of the metric that chose rose by that.
    failed
        Why images have no caption -> how many.
    """

    images: int = 0
    reused: int = 0
    changed: int = 0
    gain: float | None = None
    failed: dict[str, int] = field(default_factory=dict)


def caption_samples(
    samples: Sequence[Sample], captioner: Captioner, options: CaptioningOptions | None = None
) -> tuple[list[Sample], CaptioningReport]:
    """The samples with new captions.

    Parameters
    ----------
    samples
        With images, and the language that their captions shall be in; without one, English. Other fields stay.
    captioner
        What describes the images.
    options
        How many captions, and which of them is chosen.

    Returns
    -------
    list of Sample, CaptioningReport
        The samples with their captions, the captioner as `system`, and in `meta` its log-probability, the other
        captions, and the signature that reproduces it. Where there is none, `caption_error` says why.

    Raises
    ------
    InputError
        If the captioner does not write a language, or no sample has an image.
    """
    options = options or CaptioningOptions()
    wanted = [replace(sample, lang=_language(sample)) for sample in samples]
    _warn_of_replaced_columns(wanted)
    for lang in dict.fromkeys(str(sample.lang) for sample in wanted):
        captioner.check_language(lang)
    if not any(missing_input(sample, frozenset({"image"})) is None for sample in wanted):
        raise InputError("no image was found; name a folder of images, or a file whose rows have images.")
    note_kept("Captions are kept, and the same command goes on.")
    report = CaptioningReport(images=len(wanted))
    results = _caption_all(wanted, captioner, options, report)
    order = _order(wanted, results, options.rerank, report)
    signature = _signature(captioner, options)
    captioned = [
        _captioned(sample, result, places, captioner, signature)
        for sample, result, places in zip(wanted, results, order, strict=True)
    ]
    report.failed = dict(Counter(result.error for result in results if result.error is not None))
    return captioned, report


def _signature(captioner: Captioner, options: CaptioningOptions) -> str:
    chosen = "" if options.rerank is None else f"|rerank:{options.rerank.name}"
    return (
        f"caption|captioner:{visible(captioner.name)}@{captioner.fingerprint[:8]}|nbest:{options.nbest}{chosen}|v:{__version__}"
    )


def _caption_all(
    samples: Sequence[Sample], captioner: Captioner, options: CaptioningOptions, report: CaptioningReport
) -> list[ImageCaptions]:
    """The captions of each sample's image, from the store where they are there. Each batch is kept before the next begins."""
    by_key: dict[bytes, Sample] = {}
    keys: list[bytes | str] = []
    for sample in track(samples, "reading images", len(samples)):
        key = _key(sample, captioner, options.nbest)
        keys.append(key)
        if isinstance(key, bytes):
            by_key.setdefault(key, sample)
    stored = options.store.get(list(by_key))
    results = {key: ImageCaptions(hypotheses) for key, hypotheses in stored.items()}
    report.reused = sum(key in results for key in keys)
    missing: dict[str, list[bytes]] = {}
    for key, sample in by_key.items():
        if key not in results:
            missing.setdefault(str(sample.lang), []).append(key)
    batches = [(lang, part) for lang, of_language in missing.items() for part in _parts(of_language, _size(captioner, options))]
    for lang, part in track(batches, "captioning", sum(map(len, missing.values())), size=lambda batch: len(batch[1])):
        results |= _caption_batch(part, by_key, captioner, lang, options)
    return [results[key] if isinstance(key, bytes) else ImageCaptions(error=key) for key in keys]


def _size(captioner: Captioner, options: CaptioningOptions) -> int:
    return min(options.batch, int(getattr(captioner, "batch", options.batch)))


def _parts(keys: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _key(sample: Sample, captioner: Captioner, nbest: int) -> bytes | str:
    """What captions of an image depend on; or why it cannot be read."""
    error = missing_input(sample, frozenset({"image"}))
    if error is not None:
        return error.reason
    try:
        content = image_key(_image(sample))
    except UnreadableError as problem:
        return str(problem)
    facts = "\0".join(("caption", captioner.fingerprint, str(sample.lang), str(nbest)))
    return hashlib.sha256(facts.encode() + content).digest()[:20]


def _image(sample: Sample) -> ImageSource:
    assert sample.image is not None
    return sample.image


def _caption_batch(
    keys: Sequence[bytes], by_key: Mapping[bytes, Sample], captioner: Captioner, lang: str, options: CaptioningOptions
) -> dict[bytes, ImageCaptions]:
    images: dict[bytes, Any] = {}
    results: dict[bytes, ImageCaptions] = {}
    for key in keys:
        try:
            images[key] = decode(_image(by_key[key]))
        except UnreadableError as problem:
            results[key] = ImageCaptions(error=str(problem))
    captions = captioner.caption(list(images.values()), lang, options.nbest) if images else []
    if len(captions) != len(images):
        raise CaplensError(f"{captioner.name} returned {len(captions)} results for {len(images)} images.")
    results |= dict(zip(images, captions, strict=True))
    options.store.put({key: result.hypotheses for key, result in results.items() if result.hypotheses and result.error is None})
    return results


def _order(
    samples: Sequence[Sample], results: Sequence[ImageCaptions], metric: Metric | None, report: CaptioningReport
) -> list[list[int]]:
    """The places of each image's captions, those that the metric scores highest first; one without a score comes last."""
    if metric is None:
        return [list(range(len(result.hypotheses))) for result in results]
    candidates = [
        replace(sample, id=f"{row} {place}", caption=hypothesis.text)
        for row, (sample, result) in enumerate(zip(samples, results, strict=True))
        for place, hypothesis in enumerate(result.hypotheses)
    ]
    if not candidates:
        return [[] for _ in results]
    result = run_metrics(track(candidates, "choosing captions", len(candidates)), [metric])
    for warning in result.warnings:
        logger.warning(warning)
    sign = -1.0 if getattr(metric, "lower_is_better", False) else 1.0
    scores = sign * result[metric.name].values
    order, gains, start = [], [], 0
    for captions in results:
        own = scores[start : start + len(captions.hypotheses)]
        start += len(own)
        places = np.argsort(-np.nan_to_num(own, nan=-np.inf), kind="stable").tolist()
        order.append(places)
        if places:
            report.changed += places[0] != 0
            gains.append(own[places[0]] - own[0])
    scored = [gain for gain in gains if not np.isnan(gain)]
    report.gain = float(np.mean(scored)) if scored else None
    return order


def _captioned(sample: Sample, result: ImageCaptions, places: Sequence[int], captioner: Captioner, signature: str) -> Sample:
    """The sample with the caption that was chosen, and what is known of it."""
    meta = {name: value for name, value in sample.meta.items() if name not in _COLUMNS}
    # What people said of the caption before does not belong to this one.
    sample = replace(sample, ratings=())
    if not result.hypotheses:
        return replace(sample, caption=None, system=_short_name(captioner), meta={**meta, "caption_error": result.error or ""})
    chosen = result.hypotheses[places[0]]
    if chosen.log_probability is not None:
        # Its last digits depend on which images were computed together.
        meta["log_probability"] = round(chosen.log_probability, 4)
    if len(result.hypotheses) > 1:
        meta["nbest"] = [result.hypotheses[place].text for place in places]
        meta["rank"] = places[0] + 1
    meta["captioner"] = signature
    return replace(sample, caption=chosen.text, system=_short_name(captioner), meta=meta)


_COLUMNS = ("log_probability", "nbest", "rank", "captioner", "caption_error")


def _warn_of_replaced_columns(samples: Sequence[Sample]) -> None:
    replaced = sorted({name for sample in samples for name in sample.meta if name in _COLUMNS})
    if replaced:
        logger.warning(f"the columns {', '.join(replaced)} of the input are replaced by those of the new captions.")


def _short_name(captioner: Captioner) -> str:
    """The last part of a captioner's name that says something: of a folder that training wrote, the run's."""
    parts = [part for part in visible(captioner.name).replace("\\", "/").split("/") if part]
    last = parts[-2] if len(parts) > 1 and parts[-1] == "model" else parts[-1]
    return last.rpartition("=")[2]


def wanted_captions(samples: Iterable[Sample], langs: Sequence[str]) -> list[Sample]:
    """A sample for each image and language: with all references that rows of its id have in that language.

    Without `langs`, the languages are those of the rows. An id that names two images is an error.
    """
    first: dict[str, Sample] = {}
    references: dict[tuple[str, str], dict[str, None]] = {}
    for sample in samples:
        earlier = first.setdefault(sample.id, sample)
        if earlier.group != sample.group:
            raise InputError(f"the id {sample.id!r} names two images, {earlier.group} and {sample.group}. Give each its own id.")
        references.setdefault((sample.id, _language(sample)), {}).update(dict.fromkeys(sample.references))
    chosen = list(dict.fromkeys(base_language(lang) for lang in langs))
    keys = [(name, lang) for name in first for lang in chosen] if chosen else list(references)
    return [replace(first[name], lang=lang, references=tuple(references.get((name, lang), ()))) for name, lang in keys]


def _language(sample: Sample) -> str:
    return base_language(sample.lang or "en")

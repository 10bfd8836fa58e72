"""Suggestions for captions that are bad: what a captioner says of their images."""

from dataclasses import replace

from caplens.captioners.base import Captioner
from caplens.captioners.captioning import CaptioningOptions, caption_samples
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.results.check import CheckedCaption, CheckResult
from caplens.translation.store import HypothesisStore


def with_suggestions(result: CheckResult, captioner: Captioner, store: HypothesisStore | None = None) -> CheckResult:
    """The result with a suggestion for each caption that has a fault, an image, and a language that the captioner writes."""
    places = [place for place, caption in enumerate(result.captions) if _can_be_suggested(caption, captioner)]
    if not places:
        return result
    samples = [Sample(str(place), image=result.captions[place].path, lang=result.captions[place].lang) for place in places]
    options = CaptioningOptions() if store is None else CaptioningOptions(store=store)
    captioned, _ = caption_samples(samples, captioner, options)
    captions = list(result.captions)
    for place, sample in zip(places, captioned, strict=True):
        captions[place] = replace(captions[place], suggestion=sample.caption)
    return replace(result, captions=captions)


def _can_be_suggested(caption: CheckedCaption, captioner: Captioner) -> bool:
    if not caption.faults or caption.path is None:
        return False
    try:
        captioner.check_language(caption.lang or "en")
    except InputError:
        return False
    return True

"""Captions that come bit by bit and are scored together at the end."""

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from caplens import api
from caplens.data import Sample
from caplens.data.sample import Picture
from caplens.errors import InputError
from caplens.metrics import Metric, Results
from caplens.metrics.registry import check_name

_SHOWN = 3
_ONE_IMAGE = 3
"""Dimensions of one; a batch has four."""
References = Sequence[str | Sequence[str]]


class Gathered:
    """`options` are those of `caplens.score`."""

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], **options: Any) -> None:
        known = inspect.signature(api.score).parameters.keys() - {"samples", "metrics", "references", "images"}
        odd = next((name for name in options if name not in known), None)
        if odd is not None:
            raise InputError(
                f"there is no option {odd!r}; choose from: {', '.join(sorted(known))}. A model is given as model='hf:ORG/NAME'."
            )
        self.metrics = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
        for name in self.metrics:
            if isinstance(name, str):
                check_name(name)
        self.options = options
        self.samples: list[Sample] = []

    def add(
        self,
        captions: Sequence[str] | str,
        references: References | str | None = None,
        images: Sequence[Any] | None = None,
        lang: str | Sequence[str] | None = None,
    ) -> list[Sample]:
        """Captions, with a text or several to compare each with, and an image each: a path, bytes, a PIL image, or an array or
        tensor of three channels, first or last, of whole numbers up to 255 or of others up to 1.
        """
        captions = [captions] if isinstance(captions, str) else list(captions)
        if hasattr(references, "shape"):
            raise InputError(f"references are texts, not {type(references).__name__}; images are given with images=.")
        if getattr(images, "ndim", 0) == _ONE_IMAGE:
            images = [images]
        langs = [lang] * len(captions) if lang is None or isinstance(lang, str) else list(lang)
        known: list[str | Sequence[str]] = [()] * len(captions)
        if references is not None:
            known = [references] if isinstance(references, str) else list(references)
        seen = [None] * len(captions) if images is None else list(images)
        for name, some in (("references", known), ("images", seen), ("languages", langs)):
            if len(some) != len(captions):
                raise InputError(f"there are {len(captions)} captions and {len(some)} {name}; give one for each caption.")
        odd = next((caption for caption in captions if not isinstance(caption, str)), None)
        if odd is not None:
            raise InputError(f"captions are texts, not {type(odd).__name__}; images are given with images=.")
        start = len(self.samples)
        added = [
            Sample(
                str(start + place), caption, (texts,) if isinstance(texts, str) else tuple(texts or ()), _picture(image), lang=tag
            )
            for place, (caption, texts, image, tag) in enumerate(zip(captions, known, seen, langs, strict=True))
        ]
        self.samples += added
        return added

    def score(self, samples: Sequence[Sample] | None = None) -> Results:
        """The scores of all captions, or of some; what could not be scored is warned of."""
        some = self.samples if samples is None else samples
        if not some:
            raise InputError("there are no captions to score; add some first.")
        results = api.score(some, self.metrics, **{"resamples": 0, **self.options})
        errors = [f"caption {identifier} has no score: {why}" for identifier, why in results.errors.items()]
        more = [f"{len(errors) - _SHOWN} more captions have no score"] if len(errors) > _SHOWN else []
        for warning in (*errors[:_SHOWN], *more, *results.warnings):
            warnings.warn(warning, stacklevel=4)
        return results


def _picture(image: Any) -> Picture | None:
    """An image as samples have it."""
    if not hasattr(image, "shape"):
        return image  # type: ignore[no-any-return]
    if hasattr(image, "detach"):
        image = (image.float() if image.is_floating_point() else image).detach().cpu()
    pixels = np.asarray(image)
    if pixels.ndim != 3 or 3 not in (pixels.shape[0], pixels.shape[2]):
        raise InputError(f"an image has height, width and three channels, not the shape {tuple(pixels.shape)}.")
    if pixels.shape[2] != 3:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.dtype.kind == "f":
        if not (pixels.min() >= 0 and pixels.max() <= 1):
            raise InputError("an image of fractions lies between 0 and 1; undo what was done to prepare it for a model.")
        pixels = (pixels * 255).round()
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))

"""Captions that arrive in batches and are scored together at the end."""

import warnings
from collections.abc import Sequence
from typing import TypedDict, cast

from caplens import api
from caplens.data import Sample
from caplens.data.inputs import samples_from_lists
from caplens.data.media import ImageArray, ImageSource, as_images
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.registry import canonical_name
from caplens.results.scores import ScoreResult

TextReferences = Sequence[str | Sequence[str]]
"""One text or several for each caption."""
ImageBatch = Sequence[ImageSource | ImageArray] | ImageArray
Languages = str | Sequence[str] | None


class BufferOptions(ScoringKeywords, total=False):
    """The options of `caplens.score` that an adapter takes."""

    resamples: int
    seed: int
    strict: bool


class _RunOptions(TypedDict, total=False):
    resamples: int
    seed: int
    strict: bool


class CaptionBuffer:
    """Captions with their references and images, and the metrics to score them with."""

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], options: BufferOptions, resamples: int = 0) -> None:
        self.metrics = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
        for name in self.metrics:
            if isinstance(name, str):
                canonical_name(name)
        run = {name: value for name, value in options.items() if name in _RunOptions.__annotations__}
        scoring = {name: value for name, value in options.items() if name not in run}
        self._run = cast(_RunOptions, {"resamples": resamples, **run})
        self._options = ScoringOptions.of(**cast(ScoringKeywords, scoring))
        self.samples: list[Sample] = []

    def add(
        self,
        captions: Sequence[str] | str,
        references: TextReferences | str | None = None,
        images: ImageBatch | ImageSource | None = None,
        lang: Languages = None,
    ) -> list[Sample]:
        """Take in captions, with a text or several to compare each with, and an image each: a path, bytes, a PIL image, or an
        array or tensor of three channels, first or last, of integers up to 255 or of fractions up to 1.
        """
        captions = [captions] if isinstance(captions, str) else list(captions)
        if isinstance(references, ImageArray):
            raise InputError(f"references are texts, not {type(references).__name__}; images are passed with images=.")
        added = samples_from_lists(
            captions,
            [references] if isinstance(references, str) else references,
            None if images is None else as_images(images),
            [lang] * len(captions) if isinstance(lang, str) else lang,
            start=len(self.samples),
        )
        self.samples += added
        return added

    def score(self, samples: Sequence[Sample] | None = None) -> ScoreResult:
        """The scores of all captions, or of some; warns of what could not be scored."""
        chosen = self.samples if samples is None else samples
        if not chosen:
            raise InputError("there are no captions to score; add some first.")
        result = api.score(chosen, self.metrics, options=self._options, **self._run)
        for warning in result.warnings:
            warnings.warn(warning, stacklevel=4)
        return result

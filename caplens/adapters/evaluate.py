"""`compute(predictions=…, references=…)`, as modules of Hugging Face's evaluate have it. Does not need evaluate."""

from collections.abc import Sequence
from typing import Unpack

from caplens.adapters.caption_buffer import BufferOptions, CaptionBuffer, ImageBatch, Languages, TextReferences
from caplens.data.media import ImageArray, ImageSource
from caplens.metrics import METRICS, Metric
from caplens.stats import RESAMPLES


def load(metrics: str | Sequence[str | Metric], **options: Unpack[BufferOptions]) -> "CaptionModule":
    """A metric by its name, as `evaluate.load` returns one; `options` are those of `caplens.score`."""
    return CaptionModule(metrics, **options)


class CaptionModule:
    """Scores captions passed at once, or added bit by bit."""

    def __init__(self, metrics: str | Sequence[str | Metric], **options: Unpack[BufferOptions]) -> None:
        self._buffer = CaptionBuffer(metrics, options, resamples=RESAMPLES)
        names = [metric if isinstance(metric, str) else metric.name for metric in self._buffer.metrics]
        self.name = ", ".join(names)
        self.description = "; ".join(METRICS[name].summary for name in names if name in METRICS)

    def add(
        self,
        *,
        prediction: str,
        reference: str | Sequence[str] | None = None,
        image: ImageSource | ImageArray | None = None,
        lang: str | None = None,
    ) -> None:
        """Take in one caption."""
        self._buffer.add([prediction], None if reference is None else [reference], None if image is None else [image], lang)

    def add_batch(
        self,
        *,
        predictions: Sequence[str],
        references: TextReferences | None = None,
        images: ImageBatch | None = None,
        lang: Languages = None,
    ) -> None:
        """Take in several captions."""
        self._buffer.add(predictions, references, images, lang)

    def compute(
        self,
        *,
        predictions: Sequence[str] | None = None,
        references: TextReferences | None = None,
        images: ImageBatch | None = None,
        lang: Languages = None,
    ) -> dict[str, float | dict[str, tuple[float, float]] | dict[str, str]]:
        """Each metric's score, its interval under `intervals` and its signature under `signatures`.

        What was added is scored too, and forgotten.
        """
        if predictions is not None:
            self._buffer.add(predictions, references, images, lang)
        try:
            result = self._buffer.score()
        finally:
            self._buffer.samples.clear()
        return {
            **{name: scores.corpus for name, scores in result.metrics.items()},
            "intervals": result.intervals,
            "signatures": {name: scores.signature for name, scores in result.metrics.items()},
        }

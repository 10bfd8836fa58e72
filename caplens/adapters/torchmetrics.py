"""`update` and `compute`, as metrics of torchmetrics have them, for training and evaluation loops. Does not need torchmetrics."""

from collections.abc import Sequence
from typing import Unpack

from caplens.adapters.caption_buffer import BufferOptions, CaptionBuffer, ImageBatch, Languages, TextReferences
from caplens.metrics import Metric
from caplens.results.scores import ScoreResult


class CaptionScore:
    """One metric, or several, over captions that come in batches.

    `CaptionScore("cider")` computes a number, `CaptionScore(["cider", "bleu4"])` a dictionary. `options` are those of
    `caplens.score`: `model`, `tokenizer`, `lang`, `df`, …

    Examples
    --------
    >>> metric = CaptionScore("bleu1")
    >>> metric.update(["a dog runs"], [["a dog runs", "the dog is running"]])
    >>> round(metric.compute(), 3)
    1.0
    """

    higher_is_better = True
    is_differentiable = False

    def __init__(self, metrics: str | Metric | Sequence[str | Metric] = "cider", **options: Unpack[BufferOptions]) -> None:
        self._buffer = CaptionBuffer(metrics, options)
        self._single = isinstance(metrics, str | Metric)

    def update(
        self,
        preds: Sequence[str] | str,
        target: TextReferences | str | None = None,
        images: ImageBatch | None = None,
        lang: Languages = None,
    ) -> None:
        """Take in captions with their references, one text or several each, or with their images."""
        self._buffer.add(preds, target, images, lang)

    def compute(self) -> float | dict[str, float]:
        """The score of everything since the last `reset`."""
        return self._corpus_scores(self.results())

    def results(self) -> ScoreResult:
        """The same with a score for each caption, and signatures."""
        return self._buffer.score()

    def forward(
        self,
        preds: Sequence[str] | str,
        target: TextReferences | str | None = None,
        images: ImageBatch | None = None,
        lang: Languages = None,
    ) -> float | dict[str, float]:
        """The score of this batch alone, which is also taken in."""
        return self._corpus_scores(self._buffer.score(self._buffer.add(preds, target, images, lang)))

    __call__ = forward

    def reset(self) -> None:
        self._buffer.samples.clear()

    def to(self, *_: object, **__: object) -> "CaptionScore":
        """Does nothing: it holds texts, and the model chooses its own device. For loops that move all their metrics."""
        return self

    def _corpus_scores(self, result: ScoreResult) -> float | dict[str, float]:
        scores = {name: scores.corpus for name, scores in result.metrics.items()}
        return next(iter(scores.values())) if self._single else scores

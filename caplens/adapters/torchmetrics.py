"""`update` and `compute`, as metrics of torchmetrics have them, for training and evaluation loops. Needs no torchmetrics."""

from collections.abc import Sequence
from typing import Any

from caplens.adapters.gathered import Gathered, References
from caplens.metrics import Metric, Results


class CaptionScore:
    """One metric, or several, over captions that come in batches.

    `CaptionScore("cider")` gives a number, `CaptionScore(["cider", "bleu4"])` a dictionary. `options` are those of
    `caplens.score`: `model`, `tokenizer`, `lang`, `df`, …
    """

    higher_is_better = True
    is_differentiable = False

    def __init__(self, metrics: str | Metric | Sequence[str | Metric] = "cider", **options: Any) -> None:
        self._gathered = Gathered(metrics, **options)
        self._one = isinstance(metrics, str | Metric)

    def update(
        self,
        preds: Sequence[str] | str,
        target: References | str | None = None,
        images: Sequence[Any] | None = None,
        lang: str | Sequence[str] | None = None,
    ) -> None:
        """Take in captions with their references, one text or several each, or with the images that they are about."""
        self._gathered.add(preds, target, images, lang)

    def compute(self) -> float | dict[str, float]:
        """The score of everything since the last `reset`."""
        return self._shown(self.results())

    def results(self) -> Results:
        """The same with a score for each caption, and signatures."""
        return self._gathered.score()

    def forward(
        self,
        preds: Sequence[str] | str,
        target: References | str | None = None,
        images: Sequence[Any] | None = None,
        lang: str | Sequence[str] | None = None,
    ) -> float | dict[str, float]:
        """The score of this batch alone, which is also taken in."""
        return self._shown(self._gathered.score(self._gathered.add(preds, target, images, lang)))

    __call__ = forward

    def reset(self) -> None:
        self._gathered.samples.clear()

    def to(self, *_: Any, **__: Any) -> "CaptionScore":
        """Nothing moves: it holds texts, and the model chooses its own device. For loops that move all their metrics."""
        return self

    def _shown(self, results: Results) -> float | dict[str, float]:
        scores = {name: found.corpus for name, found in results.metrics.items()}
        return next(iter(scores.values())) if self._one else scores

"""`compute(predictions=…, references=…)`, as modules of Hugging Face's evaluate have it. Needs no evaluate."""

from collections.abc import Sequence
from typing import Any

from caplens.adapters.gathered import Gathered, References
from caplens.metrics import METRICS, Metric


def load(metrics: str | Sequence[str | Metric], **options: Any) -> "CaptionModule":
    """A metric by its name, as `evaluate.load` gives one; `options` are those of `caplens.score`."""
    return CaptionModule(metrics, **options)


class CaptionModule:
    """Scores captions given at once, or added bit by bit."""

    def __init__(self, metrics: str | Sequence[str | Metric], **options: Any) -> None:
        self._gathered = Gathered(metrics, **{"resamples": 1000, **options})
        names = [one if isinstance(one, str) else one.name for one in self._gathered.metrics]
        self.name = ", ".join(names)
        self.description = "; ".join(METRICS[name].summary for name in names if name in METRICS)

    def add(
        self,
        *,
        prediction: str,
        reference: str | Sequence[str] | None = None,
        image: Any = None,
        lang: str | None = None,
    ) -> None:
        """One caption."""
        self._gathered.add([prediction], None if reference is None else [reference], None if image is None else [image], lang)

    def add_batch(
        self,
        *,
        predictions: Sequence[str],
        references: References | None = None,
        images: Sequence[Any] | None = None,
        lang: str | Sequence[str] | None = None,
    ) -> None:
        self._gathered.add(predictions, references, images, lang)

    def compute(
        self,
        *,
        predictions: Sequence[str] | None = None,
        references: References | None = None,
        images: Sequence[Any] | None = None,
        lang: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Each metric's score, and under `intervals` and `signatures` how far it can be trusted and how it was made.

        What was added is scored too, and forgotten.
        """
        if predictions is not None:
            self._gathered.add(predictions, references, images, lang)
        try:
            results = self._gathered.score()
        finally:
            self._gathered.samples.clear()
        return {
            **{name: found.corpus for name, found in results.metrics.items()},
            "intervals": results.intervals,
            "signatures": {name: found.signature for name, found in results.metrics.items()},
        }

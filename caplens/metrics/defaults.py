"""Which metrics a task computes when the user names none; the same in Python and on the command line."""

from typing import Literal, NamedTuple

Task = Literal["score", "compare", "bench", "agreement", "crossmodal", "robustness"]


class DefaultMetrics(NamedTuple):
    """The default metrics of a task."""

    text: tuple[str, ...]
    """Without images."""
    images: tuple[str, ...]
    """Where images or a model are given."""


_COCO = ("bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider")
_AGREEMENT = ("bleu1", "bleu4", "rouge-l", "cider", "length")
DEFAULT_METRICS: dict[Task, DefaultMetrics] = {
    "score": DefaultMetrics(_COCO, ("clipscore",)),
    "compare": DefaultMetrics(("bleu4", "rouge-l", "cider"), ("clipscore",)),
    "bench": DefaultMetrics(_AGREEMENT, (*_AGREEMENT, "clipscore", "refclipscore")),
    "agreement": DefaultMetrics(_AGREEMENT, (*_AGREEMENT, "clipscore", "refclipscore")),
    "crossmodal": DefaultMetrics(("cider-original", "cider"), ("cider-original", "cider", "clipscore")),
    "robustness": DefaultMetrics(_COCO, ("clipscore",)),
}
EXAMPLE_METRICS = ("clipscore", "refclipscore", "cider", "bleu4")
"""Of the example inside the package (`caplens score --example`, `caplens demo`)."""


def default_metrics(task: Task, *, with_images: bool) -> list[str]:
    """The metrics of a task; `with_images` where images, or a model that encodes them, were given."""
    return list(DEFAULT_METRICS[task].images if with_images else DEFAULT_METRICS[task].text)

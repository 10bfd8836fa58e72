"""CLIPScore and CIDEr together, as Qiu et al. (2023) and table 2 of the multilingual CLIPScore paper combine them: their mean."""

from collections.abc import Sequence
from typing import Self

from caplens.metrics.base import Collector, Metric
from caplens.metrics.cider import Cider
from caplens.metrics.clipscore import ClipScore
from caplens.metrics.embedding import CosineCollector
from caplens.metrics.options import ScoringOptions
from caplens.results.scores import Scores, mean_of, mean_pool, mean_statistics


class ClipCider(Metric):
    """The mean of CLIPScore and CIDEr-D (0 to 10). Its parts are collected once if they are computed by themselves too."""

    name = "clip+cider"
    needs = frozenset({"caption", "image", "references", "encoder"})

    def __init__(self, clip: ClipScore, cider: Cider) -> None:
        self.clip, self.cider = clip, cider

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(ClipScore.from_options(options), Cider.from_options(options))

    def collectors(self) -> tuple[Collector, ...]:
        return *self.clip.collectors(), *self.cider.collectors()

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        cosines, tokens = collected
        assert isinstance(cosines, CosineCollector)
        clip, cider = self.clip.compute([cosines], size), self.cider.compute([tokens], size)
        values = (clip.values + cider.values) / 2
        return Scores(
            values,
            mean_of(values),
            f"{self.name}|mean:0.5*clipscore+0.5*cider|{clip.signature}|{cider.signature}",
            mean_statistics(values),
            mean_pool,
            cosines.means(values),
            warnings=clip.warnings + cider.warnings,
            truncated=clip.truncated,
            coverage_warnings=clip.coverage_warnings,
        )

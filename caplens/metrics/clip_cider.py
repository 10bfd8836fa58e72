"""CLIPScore or RefCLIPScore and CIDEr (Qiu et al. 2023; table 2 of the multilingual CLIPScore paper): a weighted mean."""

from collections.abc import Sequence
from typing import ClassVar, Self

from caplens.metrics.base import Collector, Metric
from caplens.metrics.cider import Cider
from caplens.metrics.clipscore import ClipScore, RefClipScore
from caplens.metrics.embedding import CosineCollector
from caplens.metrics.options import CIDER_SHARE, ScoringOptions
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics


class ClipCider(Metric):
    """(1 - a) CLIPScore + a CIDEr-D (0 to 10). Its parts are collected once if they are computed by themselves too."""

    name = "clip+cider"
    needs = frozenset({"caption", "image", "references", "encoder"})
    clip_class: ClassVar[type[ClipScore] | type[RefClipScore]] = ClipScore

    def __init__(self, clip: ClipScore | RefClipScore, cider: Cider, share: float = CIDER_SHARE) -> None:
        self.clip, self.cider, self.share = clip, cider, share

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(cls.clip_class.from_options(options), Cider.from_options(options), options.cider_share)

    def collectors(self) -> tuple[Collector, ...]:
        return *self.clip.collectors(), *self.cider.collectors()

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        cosines, tokens = collected
        assert isinstance(cosines, CosineCollector)
        clip, cider = self.clip.compute([cosines], size), self.cider.compute([tokens], size)
        values = (1 - self.share) * clip.values + self.share * cider.values
        parts = f"{1 - self.share:g}*{self.clip.name}+{self.share:g}*cider"
        return Scores(
            values,
            mean_of(values),
            f"{self.name}|mean:{parts}|{clip.signature}|{cider.signature}",
            mean_statistics(values),
            mean_pool,
            cosines.means(values),
            warnings=clip.warnings + cider.warnings,
            truncated=clip.truncated,
            coverage_warnings=clip.coverage_warnings,
        )


class RefClipCider(ClipCider):
    """(1 - a) RefCLIPScore + a CIDEr-D."""

    name = "refclip+cider"
    clip_class = RefClipScore

"""CLIPScore and CIDEr together, as Qiu et al. (2023) and table 2 of the multilingual CLIPScore paper combine them: their mean."""

from collections.abc import Sequence

from caplens.data.sample import Sample
from caplens.metrics.base import Collector, Metric, Scores, mean_of, mean_pool, mean_statistics
from caplens.metrics.cider import Cider
from caplens.metrics.clipscore import ClipScore
from caplens.metrics.embedding import CosineCollector


class _Both(Collector):
    """Feeds two collectors."""

    def __init__(self, first: CosineCollector, second: Collector) -> None:
        super().__init__()
        self.key = ("both", first.key, second.key)
        self.first, self.second = first, second

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        for collector in (self.first, self.second):
            collector.add(rows, samples)
            self.problems |= collector.problems

    def finish(self) -> None:
        for collector in (self.first, self.second):
            collector.finish()
            self.problems |= collector.problems

    def warnings(self) -> list[str]:
        return self.first.warnings() + self.second.warnings()


class ClipCider(Metric):
    """The mean of CLIPScore and CIDEr-D (0 to 10)."""

    name = "clip+cider"
    requires = frozenset({"caption", "image", "references"})

    def __init__(self, clip: ClipScore, cider: Cider) -> None:
        self.clip, self.cider = clip, cider

    def collector(self) -> _Both:
        return _Both(self.clip.collector(), self.cider.collector())

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, _Both)
        clip, cider = self.clip.compute(collected.first, size), self.cider.compute(collected.second, size)
        values = (clip.values + cider.values) / 2
        return Scores(
            values,
            mean_of(values),
            f"{self.name}|mean:0.5*clipscore+0.5*cider|{clip.signature}|{cider.signature}",
            mean_statistics(values),
            mean_pool,
            collected.first.means(values),
            warnings=clip.warnings + cider.warnings,
            truncated=clip.truncated,
            doubts=clip.doubts,
        )

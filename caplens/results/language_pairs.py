"""`LanguagePair`: do captions in two languages fit their images equally well?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Self

from caplens.data.languages import language_names
from caplens.results.base import Content, null_if_nan, number
from caplens.results.table import LEVEL, Cell, Table, shown_p

LEVEL_OF_TESTS = 0.05


@dataclass(frozen=True)
class LanguagePair:
    """Two languages by one metric.

    Attributes
    ----------
    images
        Images with captions in both. With fewer than 20, all images of both are compared, as those of two groups.
    paired
        Whether captions of the same images were compared.
    difference, low, high
        The first language minus the second, with its 95% interval: of percentiles where levels are known, else of scores.
    p
        Corrected by Holm for all pairs of the metric.
    correlation
        Pearson's, between the scores of the same images; NaN where too few are shared.
    """

    first: str
    second: str
    images: int
    paired: bool
    difference: float
    low: float
    high: float
    p: float
    correlation: float

    def to_dict(self) -> dict[str, Any]:
        return {name: null_if_nan(value) if isinstance(value, float) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        numbers = {name: number(content[name]) for name in ("difference", "low", "high", "p", "correlation")}
        return cls(str(content["first"]), str(content["second"]), int(content["images"]), bool(content["paired"]), **numbers)

    @property
    def is_certain(self) -> bool:
        return self.p < LEVEL_OF_TESTS

    def from_side_of(self, lang: str) -> Self:
        """The pair with this language as the first of the two."""
        if lang == self.first:
            return self
        turned = {
            "first": self.second,
            "second": self.first,
            "difference": -self.difference,
            "low": -self.high,
            "high": -self.low,
        }
        return replace(self, **turned)  # type: ignore[arg-type]


def pair_table(metric: str, pairs: Sequence[LanguagePair], means: Mapping[str, float], *, percentiles: bool) -> Table:
    """The languages from worst to best, each with the test against the next better one."""
    by_names = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    order = sorted((lang for lang in means if any(lang in names for names in by_names)), key=lambda lang: means[lang])
    rows: list[list[Cell]] = []
    for worse, better in pairwise(order):
        pair = by_names[frozenset((worse, better))].from_side_of(worse)
        of = f"{pair.images:,} in both" if pair.paired else "different ones"
        rows.append([f"{worse} - {better}", shown_p(pair.p), pair.difference, f"[{pair.low:.3f}, {pair.high:.3f}]", of])
    unit = "percentile" if percentiles else "score"
    notes = [
        f"From the lowest to the highest mean {unit}; p-values are corrected for all {len(pairs)} pairs of languages (Holm)."
        " Tests are paired permutation tests over images with captions in both, else Mann-Whitney tests."
        " Differences are on those images, and can differ from those of all captions.",
    ]
    if not percentiles:
        notes.append("Scores of two languages are not on one scale: what 'caplens calibrate' measures makes them comparable.")
    return Table(["languages", "p", "difference", LEVEL, "images"], rows, title=f"{metric}, language by language", notes=notes)


def lowest_language(pairs: Sequence[LanguagePair], percentiles: Mapping[str, float]) -> str:
    """Which language is the worst, and whether that is more than chance, in a sentence; empty if there are no pairs.

    Of percentiles only: raw scores of two languages differ by their scales, whatever the captions are.
    """
    by_names = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    order = sorted((lang for lang in percentiles if any(lang in names for names in by_names)), key=lambda lang: percentiles[lang])
    if len(order) < 2:
        return ""
    names = {lang: language_names().get(lang, lang) for lang in order}
    rivals = [lang for lang in order[1:] if not by_names[frozenset((order[0], lang))].is_certain]
    if not rivals:
        pair = by_names[frozenset(order[:2])].from_side_of(order[0])
        where = "on the images of both" if pair.paired else "on different images"
        return (
            f"{names[order[0]]} has the lowest percentiles, and that is not chance: {where}, captions stand"
            f" {-pair.difference:.1f} [{-pair.high:.1f}, {-pair.low:.1f}] lower than in {names[order[1]]}, which is next,"
            f" p {shown_p(pair.p)}."
        )
    listed = ", ".join(names[lang] for lang in rivals[:5]) + (" and others" if len(rivals) > 5 else "")
    return f"{names[order[0]]} has the lowest percentiles, but may be no worse than {listed}: the differences may be chance."

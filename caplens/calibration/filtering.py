"""Which captions to keep: those that fit their images best, well enough, or better than chance."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats
from caplens.errors import InputError, option
from caplens.results.metric_names import printed_metric
from caplens.results.scores import ScoreResult

CHANCE = 95.0
"""Percentile of captions of other images; a caption at or below it is no better than chance."""


@dataclass(frozen=True)
class FilterRule:
    """What is kept; of several conditions, captions that meet all.

    Attributes
    ----------
    keep_top
        The share of scored captions to keep, between 0 and 1: the best ones.
    above
        Only captions that score higher than this.
    above_chance
        Only captions that score higher than 95% of captions of other images of their language do.
    """

    keep_top: float | None = None
    above: float | None = None
    above_chance: bool = False

    def __post_init__(self) -> None:
        if self.keep_top is None and self.above is None and not self.above_chance:
            raise InputError(
                f"say which captions to keep: {option('keep_top', '30%')}, {option('above', '0.3')} or {option('above_chance')}."
            )
        if self.keep_top is not None and not 0 < self.keep_top <= 1:
            raise InputError(f"the share of captions to keep lies above 0% and is at most 100%, not {100 * self.keep_top:g}%.")
        if self.above is not None and not np.isfinite(self.above):
            raise InputError(f"{self.above} is not a score that captions can lie above.")

    @property
    def has_limit(self) -> bool:
        """Whether scores alone decide, or help to."""
        return self.keep_top is not None or self.above is not None


@dataclass(frozen=True)
class FilterReport:
    """What a filter did.

    Attributes
    ----------
    rows, kept, unscored
        How many captions there were, how many were written, and how many had no score and were left out.
    threshold
        The lowest score among those that were kept; NaN if there are none.
    signature
        Of the scores.
    """

    rows: int
    kept: int
    unscored: int
    threshold: float
    metric: str
    signature: str
    warnings: list[str] = field(default_factory=list)


def kept_rows(result: ScoreResult, metric: str, rule: FilterRule) -> NDArray[np.bool_]:
    """Which rows of a result the rule keeps; never those without a score.

    Raises
    ------
    InputError
        If captions are to be better than chance, and the level of chance is not known.
    """
    scores = result[metric].values
    kept = kept_scores(scores, metric, replace(rule, above_chance=False)) if rule.has_limit else ~np.isnan(scores)
    if rule.above_chance:
        # The best share is that of all captions, not only of those that are better than chance.
        kept &= _above_chance(result, metric, scores)
    return kept


def kept_scores(scores: Floats, metric: str, rule: FilterRule) -> NDArray[np.bool_]:
    """Which scores a rule without a level of chance keeps; never those that are missing."""
    kept: NDArray[np.bool_] = ~np.isnan(scores)
    lowest = is_lower_better(metric)
    if rule.above is not None:
        if lowest:
            raise InputError(f"of {metric} low scores are the good ones; keep the best with {option('keep_top', '30%')}.")
        kept &= scores > rule.above
    if rule.keep_top is not None:
        kept &= _best(-scores if lowest else scores, rule.keep_top)
    return kept


def is_lower_better(metric: str) -> bool:
    """Whether low scores of a metric are the good ones."""
    return printed_metric(metric).best == "lowest"


def _best(scores: Floats, share: float) -> NDArray[np.bool_]:
    """The best share of the captions that have a score; of equal ones the first."""
    scored = np.flatnonzero(~np.isnan(scores))
    order = scored[np.argsort(-scores[scored], kind="stable")]
    best = np.zeros(len(scores), dtype=np.bool_)
    best[order[: round(share * len(scored))]] = True
    return best


def _above_chance(result: ScoreResult, metric: str, scores: Floats) -> NDArray[np.bool_]:
    levels = result.levels.get(metric)
    unknown = np.ones(len(scores), dtype=np.bool_) if levels is None else np.isnan(levels.chance)
    unknown &= ~np.isnan(scores)
    if levels is None or unknown.any():
        langs = sorted({str(result.langs[row] or "en") for row in np.flatnonzero(unknown)})
        raise InputError(
            f"the level of chance of {metric} is not known in {', '.join(langs)}. Measure it on good captions with"
            f" 'caplens calibrate', and pass its file with {option('calibration', 'FILE')}."
        )
    above: NDArray[np.bool_] = levels.chance > CHANCE
    return above

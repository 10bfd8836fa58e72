"""Thresholds that scores must reach, for checks that run by themselves: `clipscore=0.35`, or `clipscore=0.35@95%` of captions."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caplens.errors import InputError, option
from caplens.results.metric_names import printed_metric
from caplens.results.scores import ScoreResult

_FORM = re.compile(r"(?P<metric>.+?)=(?P<value>[^@]+)(?:@(?P<share>[\d.]+)%)?")


class Threshold(NamedTuple):
    """What a metric must reach: the corpus score, or the scores of a share of the captions."""

    metric: str
    value: float
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Threshold":
        """The threshold that a text such as `clipscore=0.35@95%` names."""
        match = _FORM.fullmatch(text.strip())
        try:
            if match is None:
                raise ValueError
            value = float(match["value"])
            share = None if match["share"] is None else float(match["share"]) / 100
        except ValueError:
            raise InputError(
                f"{text!r} is not a threshold. Write {option('fail_under', 'clipscore=0.35')} for the corpus score, or"
                f" {option('fail_under', 'clipscore=0.35@95%')} for 95% of the captions."
            ) from None
        if not np.isfinite(value) or (share is not None and not 0 < share <= 1):
            raise InputError(f"{text!r}: a threshold is a number, and a share lies above 0% and is at most 100%.")
        return cls(match["metric"].strip(), value, share)


def missed_thresholds(result: ScoreResult, thresholds: Sequence[Threshold]) -> list[str]:
    """A sentence for each threshold that is not reached; captions without a score do not reach it."""
    return [sentence for threshold in thresholds if (sentence := _missed(result, threshold)) is not None]


def check_thresholds(thresholds: Sequence[Threshold], metrics: Sequence[str]) -> None:
    """Raise an error if a threshold is about a metric that is not scored."""
    absent = next((threshold.metric for threshold in thresholds if threshold.metric not in metrics), None)
    if absent is not None:
        raise InputError(f"{option('fail_under')} names {absent!r}, which is not scored here ({', '.join(metrics)}).")


def _missed(result: ScoreResult, threshold: Threshold) -> str | None:
    scores = result[threshold.metric]
    sign, relation = (-1, "above") if printed_metric(threshold.metric).best == "lowest" else (1, "below")
    if threshold.share is None:
        reached = sign * scores.corpus >= sign * threshold.value
        return None if reached else f"{threshold.metric} is {scores.corpus:.4f}, {relation} {threshold.value:g}."
    share = float(np.mean(sign * scores.values >= sign * threshold.value))
    if share >= threshold.share:
        return None
    return (
        f"{100 * share:.1f}% of captions reach {threshold.metric} {threshold.value:g}; {100 * threshold.share:g}% are required."
    )

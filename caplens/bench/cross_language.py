"""Do scores of the same items in two languages agree? Pearson's correlation for every pair of languages, overall and for the
items with the worst and the best translations (multilingual CLIPScore, figure 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from caplens.bench.evaluation import BenchResults
from caplens.bench.files import numbers
from caplens.data.languages import base_language
from caplens.data.reading import SampleFile
from caplens.errors import InputError
from caplens.metrics.results import null_if_nan
from caplens.stats import get_coefficient
from caplens.stats.arrays import Floats

_LOW, _HIGH = 25, 75
"""Percentiles of translation quality."""
Quality = Mapping[tuple[str, str], float]
"""(language, caption) -> how good a translation it is."""


@dataclass(frozen=True)
class CrossLanguage:
    benchmark: str
    langs: list[str]
    items: int
    correlations: dict[str, dict[str, Floats]]
    """Metric -> all, low, high -> languages by languages."""

    def to_dict(self) -> dict[str, Any]:
        """What a heatmap is drawn from."""
        return {
            "benchmark": self.benchmark,
            "langs": self.langs,
            "items": self.items,
            "correlations": {
                metric: {
                    part: [[null_if_nan(float(value)) for value in line] for line in matrix] for part, matrix in parts.items()
                }
                for metric, parts in self.correlations.items()
            },
        }


def correlate_languages(results: Sequence[BenchResults], quality: Quality | None = None) -> CrossLanguage:
    """`results` are one benchmark in several languages, whose captions have the same ids in each."""
    common = set.intersection(*(set(some.ids) for some in results))
    if len(results) < 2 or len(common) < 2:
        raise InputError("scores can be compared across languages where two of them have the same items.")
    places = [{identifier: row for row, identifier in enumerate(some.ids)} for some in results]
    rows = [[place[identifier] for identifier in results[0].ids if identifier in common] for place in places]
    metrics = [metric for metric in results[0].results if all(metric in some.results for some in results)]
    scores = {metric: [some.scores[metric][mine] for some, mine in zip(results, rows, strict=True)] for metric in metrics}
    parts = {"all": [np.ones(len(common), dtype=np.bool_)] * len(results)}
    if quality is not None:
        parts |= _by_quality(results, rows, quality)
    pearson = get_coefficient("pearson")
    correlations: dict[str, dict[str, Floats]] = {metric: {} for metric in metrics}
    for metric, columns in scores.items():
        for part, kept in parts.items():
            matrix = np.eye(len(results))
            for a in range(len(results)):
                for b in range(a):
                    both = kept[a] & kept[b]
                    value = pearson(columns[a][both], columns[b][both]) if both.sum() > 1 else np.nan
                    matrix[a, b] = matrix[b, a] = value
            correlations[metric][part] = matrix
    return CrossLanguage(results[0].benchmark, [some.lang for some in results], len(common), correlations)


def _by_quality(
    results: Sequence[BenchResults], rows: list[list[int]], quality: Quality
) -> dict[str, list[np.ndarray[Any, Any]]]:
    """For each language the items with low and with high quality; a language without any, such as the source, has all items."""
    low, high = [], []
    for some, mine in zip(results, rows, strict=True):
        known = np.array([quality.get((some.lang, some.captions[row]), np.nan) for row in mine])
        if np.isnan(known).all():
            low.append(np.ones(len(mine), dtype=np.bool_))
            high.append(np.ones(len(mine), dtype=np.bool_))
            continue
        below, above = np.nanpercentile(known, [_LOW, _HIGH])
        low.append(known < below)
        high.append(known > above)
    return {"low": low, "high": high}


def read_quality(path: str | PathLike[str]) -> dict[tuple[str, str], float]:
    """A file of captions with `id`, `caption`, `lang` and `quality`, such as the scores of a quality estimation model."""
    found: dict[tuple[str, str], float] = {}
    for place, sample in SampleFile(path).placed():
        if sample.lang is None or "quality" not in sample.meta:
            raise InputError(f"{place}: a 'lang' and a 'quality' are needed beside the caption.")
        found[base_language(sample.lang), sample.caption or ""] = numbers(sample.meta["quality"], place)[0]
    return found

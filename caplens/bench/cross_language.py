"""Do scores of the same items in two languages agree? Pearson's correlation for every pair of languages, overall and for the
items with the worst and the best translations (multilingual CLIPScore, figure 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench.evaluation import BenchResults
from caplens.bench.files import field, numbers, read_records, text
from caplens.data.languages import base_language
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
    protocol: str
    known: dict[str, int]
    """Language -> items whose translation has a quality."""

    def to_dict(self) -> dict[str, Any]:
        """What a heatmap is drawn from."""
        return {
            "benchmark": self.benchmark,
            "langs": self.langs,
            "protocol": self.protocol,
            "items": self.items,
            "with_quality": self.known,
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
    known: dict[str, int] = {}
    if quality is not None:
        parts |= _by_quality(results, rows, quality, known)
        if not any(known.values()):
            raise InputError("none of the qualities is about a caption of this run; language and caption must be the same.")
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
    langs = [some.lang for some in results]
    return CrossLanguage(results[0].benchmark, langs, len(common), correlations, results[0].protocol, known)


def _by_quality(
    results: Sequence[BenchResults], rows: list[list[int]], quality: Quality, counts: dict[str, int]
) -> dict[str, list[np.ndarray[Any, Any]]]:
    """For each language the items with low and with high quality; a language without any, such as the source, has all items."""
    low, high = [], []
    for some, mine in zip(results, rows, strict=True):
        known = np.array([quality.get((some.lang, some.captions[row]), np.nan) for row in mine])
        counts[some.lang] = int((~np.isnan(known)).sum())
        if not counts[some.lang]:
            low.append(np.ones(len(mine), dtype=np.bool_))
            high.append(np.ones(len(mine), dtype=np.bool_))
            continue
        below, above = np.nanpercentile(known, [_LOW, _HIGH])
        low.append(known < below)
        high.append(known > above)
    return {"low": low, "high": high}


def read_quality(path: str | PathLike[str]) -> dict[tuple[str, str], float]:
    """A file with `lang`, `caption` and `quality`, such as the scores of a quality estimation model: CSV, TSV, JSONL or JSON."""
    found: dict[tuple[str, str], float] = {}
    for place, record in read_records(Path(path)):
        lang, caption, quality = (field(record, [name], place) for name in ("lang", "caption", "quality"))
        found[base_language(str(lang)), text(caption, place)] = numbers(quality, place)[0]
    if not found:
        raise InputError(f"{path}: there are no qualities in the file.")
    return found

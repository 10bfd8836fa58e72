"""Do scores of the same items in two languages agree? Pearson's correlation for every pair of languages, overall and for the
items with the worst and the best translations (multilingual CLIPScore, figure 1)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from os import PathLike
from pathlib import Path

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.data.languages import base_language
from caplens.data.records import add_once, field, numbers, read_records, text
from caplens.errors import InputError
from caplens.results.agreement import AgreementResult
from caplens.results.language_correlation import LanguageCorrelation
from caplens.stats import get_coefficient

_LOW, _HIGH = 25, 75
"""Percentiles of translation quality."""
Quality = Mapping[tuple[str, str], float]
"""(language, caption or id) -> how good a translation it is."""


def correlate_languages(
    results: Sequence[AgreementResult], quality: Quality | None = None, *, by_id: bool = False
) -> LanguageCorrelation:
    """`results` are one benchmark in several languages, whose captions have the same ids in each.

    `quality` is of captions, or of ids if `by_id`.
    """
    common = set.intersection(*(set(result.ids) for result in results))
    if len(results) < 2 or len(common) < 2:
        raise InputError("scores can be compared across languages where two of them have the same items.")
    order = [identifier for identifier in results[0].ids if identifier in common]
    rows = [_rows_of(result, order) for result in results]
    parts = {"all": [np.ones(len(common), dtype=np.bool_)] * len(results)}
    with_quality: dict[str, int] = {}
    if quality is not None:
        parts |= _by_quality(results, rows, quality, with_quality, by_id=by_id)
    metrics = [metric for metric in results[0].results if all(metric in result.results for result in results)]
    correlations: dict[str, dict[str, Floats]] = {}
    for metric in metrics:
        columns = [result.scores[metric][of_result] for result, of_result in zip(results, rows, strict=True)]
        correlations[metric] = {part: _correlation_matrix(columns, kept) for part, kept in parts.items()}
    langs = [result.lang for result in results]
    return LanguageCorrelation(results[0].benchmark, langs, len(common), correlations, results[0].protocol, with_quality)


def _rows_of(result: AgreementResult, ids: Sequence[str]) -> list[int]:
    row_of = {identifier: row for row, identifier in enumerate(result.ids)}
    return [row_of[identifier] for identifier in ids]


def _correlation_matrix(columns: Sequence[Floats], kept: Sequence[Flags]) -> Floats:
    """Pearson's correlation of every two columns, over the items that are kept in both."""
    pearson = get_coefficient("pearson")
    matrix = np.eye(len(columns))
    for first, second in combinations(range(len(columns)), 2):
        both = kept[first] & kept[second]
        value = pearson(columns[first][both], columns[second][both]) if both.sum() > 1 else np.nan
        matrix[first, second] = matrix[second, first] = value
    return matrix


def _by_quality(
    results: Sequence[AgreementResult], rows: list[list[int]], quality: Quality, counts: dict[str, int], *, by_id: bool
) -> dict[str, list[Flags]]:
    """For each language the items with low and with high quality; a language without any, such as the source, has all items."""
    low: list[Flags] = []
    high: list[Flags] = []
    for result, of_result in zip(results, rows, strict=True):
        keys = result.ids if by_id else result.captions
        qualities = np.array([quality.get((result.lang, keys[row]), np.nan) for row in of_result])
        counts[result.lang] = int((~np.isnan(qualities)).sum())
        if not counts[result.lang]:
            low.append(np.ones(len(of_result), dtype=np.bool_))
            high.append(np.ones(len(of_result), dtype=np.bool_))
            continue
        below, above = np.nanpercentile(qualities, [_LOW, _HIGH])
        low.append(qualities < below)
        high.append(qualities > above)
    if not any(counts.values()):
        raise InputError("none of the qualities is about a caption of this run; language and caption must be the same.")
    return {"low": low, "high": high}


def read_quality(path: str | PathLike[str]) -> dict[tuple[str, str], float]:
    """A file with `lang`, `caption` and `quality`, such as the scores of a quality estimation model: CSV, TSV, JSONL or JSON."""
    qualities: dict[tuple[str, str], float] = {}
    for place, record in read_records(Path(path)):
        lang, caption, quality = (field(record, [name], place) for name in ("lang", "caption", "quality"))
        add_once(qualities, (base_language(str(lang)), text(caption, place)), numbers(quality, place)[0], place)
    if not qualities:
        raise InputError(f"{path}: there are no qualities in the file.")
    return qualities

"""Are captions in one language worse than in another, and is that more than chance? Tests of every two languages."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from caplens.arrays import Flags, Floats
from caplens.data.languages import base_language
from caplens.results.language_pairs import LanguagePair
from caplens.results.scores import ScoreResult
from caplens.stats import PEARSON, SystemPair, exchange_systems, holm, interval
from caplens.stats.resampling import draws_of_groups
from caplens.stats.shift import measure_shift

FEWEST = 20
"""Images that two languages must share for a paired test."""
_MOST_PERMUTED = 2_000
"""With more images the paired t-test is used, which then says the same."""


def compare_language_pairs(
    result: ScoreResult, lang: str | None = None, resamples: int = 1000, seed: int = 0
) -> dict[str, list[LanguagePair]]:
    """Metric -> every two languages of a result; of percentiles where the result has levels for all its languages.

    `lang` is the language of captions that name none.
    """
    groups: dict[str, int] = {}
    images = np.array([groups.setdefault(group, len(groups)) for group in result.groups])
    langs = np.array([base_language(tag or lang or "en") for tag in result.langs])
    pairs = {}
    for metric, scores in result.metrics.items():
        values = comparable_values(result, metric)
        by_language = {
            code: _means_of_images(values[langs == code], images[langs == code], len(groups))
            for code in sorted(scores.by_language)
        }
        enough = {code: means for code, means in by_language.items() if np.count_nonzero(~np.isnan(means)) >= FEWEST}
        if len(enough) > 1:
            pairs[metric] = _pairs_of(enough, resamples, seed)
    return pairs


def comparable_values(result: ScoreResult, metric: str) -> Floats:
    """Percentiles among good captions where every score has one, else the scores."""
    values = result[metric].values
    levels = result.levels.get(metric)
    return levels.good if levels is not None and not np.isnan(levels.good[~np.isnan(values)]).any() else values


def _means_of_images(values: Floats, images: np.ndarray, count: int) -> Floats:
    """The mean score of each image; NaN where it has no caption with a score."""
    scored = ~np.isnan(values)
    sums = np.bincount(images[scored], values[scored], count)
    counts = np.bincount(images[scored], minlength=count)
    with np.errstate(invalid="ignore"):
        means: Floats = sums / np.where(counts, counts, np.nan)
    return means


class _PairTest(NamedTuple):
    difference: float
    low: float
    high: float
    p: float
    correlation: float = float("nan")


def _pairs_of(means: dict[str, Floats], resamples: int, seed: int) -> list[LanguagePair]:
    names = list(combinations(means, 2))
    shared = {pair: ~np.isnan(means[pair[0]]) & ~np.isnan(means[pair[1]]) for pair in names}
    paired = [pair for pair in names if np.count_nonzero(shared[pair]) >= FEWEST]
    tests = _test_paired(means, {pair: shared[pair] for pair in paired}, resamples, seed) if paired else {}
    for pair in names:
        if pair not in tests:
            tests[pair] = _test_unpaired(means[pair[0]], means[pair[1]], resamples, seed)
    p_values = holm(np.array([tests[pair].p for pair in names]))
    return [
        LanguagePair(*pair, int(shared[pair].sum()), pair in paired, *tests[pair][:3], float(p), tests[pair].correlation)
        for pair, p in zip(names, p_values, strict=True)
    ]


def _test_paired(
    means: dict[str, Floats], shared: dict[tuple[str, str], Flags], resamples: int, seed: int
) -> dict[tuple[str, str], _PairTest]:
    differences = [np.where(both, means[first] - means[second], 0.0) for (first, second), both in shared.items()]
    p_values = _paired_tests(differences, list(shared.values()), seed)
    bounds = _paired_intervals(differences, list(shared.values()), resamples, seed)
    return {
        (first, second): _PairTest(
            float(values.sum() / both.sum()), *interval, float(p), _correlation(means[first][both], means[second][both])
        )
        for ((first, second), both), values, p, interval in zip(shared.items(), differences, p_values, bounds, strict=True)
    }


def _test_unpaired(first: Floats, second: Floats, resamples: int, seed: int) -> _PairTest:
    """Of languages with captions of different images."""
    shift = measure_shift(second[~np.isnan(second)], first[~np.isnan(first)], resamples=resamples, seed=seed)
    return _PairTest(shift.difference, shift.low, shift.high, shift.level_p)


def _paired_tests(differences: list[Floats], shared: list[Flags], seed: int) -> Floats:
    """Two-sided p-values; an image that two languages do not share changes nothing when its sign is."""
    images = np.any(shared, axis=0)
    if np.count_nonzero(images) > _MOST_PERMUTED:
        tests = (ttest_1samp(values[kept], 0.0) for values, kept in zip(differences, shared, strict=True))
        return np.array([float(test.pvalue) if test.pvalue == test.pvalue else 1.0 for test in tests])
    pairs = [
        SystemPair(values[images][:, None] / 2, -values[images][:, None] / 2, lambda sums: sums[..., 0]) for values in differences
    ]
    return exchange_systems(pairs, family=len(pairs), seed=seed)


def _paired_intervals(differences: list[Floats], shared: list[Flags], resamples: int, seed: int) -> list[tuple[float, float]]:
    if not resamples:
        return [(float("nan"), float("nan"))] * len(differences)
    sums, counts = np.stack(differences, axis=1), np.stack(shared, axis=1).astype(np.float64)
    images = counts.any(axis=1)
    blocks = draws_of_groups(int(np.count_nonzero(images)), resamples, seed)
    totals = [(draws @ sums[images], draws @ counts[images]) for draws in blocks]
    resampled = np.concatenate([total / np.where(count, count, np.nan) for total, count in totals])
    return [interval(column) for column in resampled.T]


def _correlation(first: Floats, second: Floats) -> float:
    return float(PEARSON(first, second)) if np.ptp(first) > 0 and np.ptp(second) > 0 else float("nan")

"""Leaderboards: the results of benchmarks beside every published value, and results that others contribute."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from caplens.benchmarks.base import Benchmark
from caplens.benchmarks.published_by_model import reported_values
from caplens.benchmarks.rating import RatingBenchmark
from caplens.benchmarks.registry import list_benchmarks
from caplens.errors import InputError
from caplens.results.agreement import MEAN, AgreementResult
from caplens.results.leaderboard import Leaderboard, LeaderboardColumn, LeaderboardEntry
from caplens.results.suite import SuiteResult
from caplens.stats import holm

_CONVINCING = 0.01
_NOWHERE = Path("the-folder-of-the-data-set")


def build_leaderboard(results: Sequence[AgreementResult], against: str | None = None, contributor: str = "") -> Leaderboard:
    """Metrics by benchmarks: computed values beside published ones.

    Parameters
    ----------
    results
        Of benchmarks, as `bench` and `bench_many` return them.
    against
        The metric that others are tested against.
    contributor
        Who computed the values, where that is shown.

    Returns
    -------
    Leaderboard
        With the published values of the benchmarks that were not run too, and how to get their data.

    Raises
    ------
    InputError
        If `against` is no metric of the results.

    Examples
    --------
    >>> board = caplens.build_leaderboard([caplens.bench("flickr8k-expert", "flickr8k")], "cider")  # doctest: +SKIP
    """
    if against is not None and not any(against in result.results for result in results):
        metrics = dict.fromkeys(metric for result in results for metric in result.results)
        raise InputError(f"{against!r} is none of the metrics that were run: {', '.join(metrics)}.")
    entries = [entry for result in results for entry in _computed(result, against, contributor)]
    ceilings = {
        LeaderboardColumn(result.benchmark, result.protocol, result.lang, result.headline): result.raters.ceiling[result.headline]
        for result in results
        if result.raters is not None and result.headline in result.raters.ceiling
    }
    warnings = [
        f"{result.benchmark} ({result.lang}): {text}"
        for result in results
        for text in (
            f"{result.rows:,} judgements about {result.images:,} images, {result.resamples:,} resamples.",
            *result.warnings,
        )
    ]
    tests = [] if against is None else _test_warnings(results)
    return complete_leaderboard(Leaderboard(entries, ceilings, {}, against, warnings, tests))


def _test_warnings(results: Sequence[AgreementResult]) -> list[str]:
    """Say so where a difference could not be significant, however large."""
    smallest = max((2 / (result.resamples + 1) * (len(result.results) - 1) for result in results), default=0.0)
    if smallest < _CONVINCING:
        return []
    resamples = min(result.resamples for result in results)
    return [f"With {resamples:,} resamples no p can be below {min(1.0, smallest):.3f}; take more to see which metrics differ."]


def complete_leaderboard(board: Leaderboard) -> Leaderboard:
    """With the published values of all benchmarks beside the computed ones, and how to get the data of the others."""
    entries = [entry for entry in board.entries if not entry.published]
    columns = dict.fromkeys(entry.column for entry in entries)
    run, absent = {column.benchmark for column in columns}, {}
    for name, benchmark in list_benchmarks().items():
        if name in run:
            entries += [entry for column in columns if column.benchmark == name for entry in published_entries(column)]
        else:
            absent[name] = how_to_get(benchmark)
            entries += _published_of_absent(benchmark)
    return replace(board, entries=entries, absent=absent)


def results_of(result: object, name: str) -> list[AgreementResult]:
    """The benchmarks in a result of `bench`."""
    if isinstance(result, SuiteResult):
        return result.results
    if isinstance(result, AgreementResult) and result.benchmark in list_benchmarks():
        return [result]
    raise InputError(f"{name}: this is not a result of 'caplens bench'; write one with 'caplens bench all … -o FILE.json'.")


def _computed(result: AgreementResult, against: str | None, contributor: str) -> Iterator[LeaderboardEntry]:
    compared = [
        contrast
        for contrast in result.contrasts
        if contrast.measure == result.headline and against in (contrast.first, contrast.second)
    ]
    others = [contrast.second if contrast.first == against else contrast.first for contrast in compared]
    raw = [contrast.p_raw for contrast in compared]
    # Results of caplens 0.1 have p-values for all pairs only.
    corrected = [contrast.p for contrast in compared] if np.isnan(raw).any() else holm(raw).tolist()
    p_values = dict(zip(others, corrected, strict=True))
    for metric, estimates in result.results.items():
        value, low, high, *_ = estimates[result.headline]
        yield LeaderboardEntry(
            result.benchmark, result.protocol, result.lang, result.headline, metric, value, False, contributor,
            signature=result.signatures.get(metric, ""), low=low, high=high, p=p_values.get(metric, float("nan")),
        )  # fmt: skip


def published_entries(column: LeaderboardColumn) -> list[LeaderboardEntry]:
    """Every published value of a benchmark's protocol, language and measure, each with its source."""
    benchmark = list_benchmarks()[column.benchmark]
    entries = [
        LeaderboardEntry(*column, metric, value, True, paper.source)
        for paper in benchmark.published
        if (paper.protocol, paper.lang) == (column.protocol, column.lang)
        for metric, value in paper.values.get(column.measure, {}).items()
    ]
    entries += [
        LeaderboardEntry(*column, row.metric, row.value, True, row.source, row.model)
        for row in reported_values(column.benchmark, column.protocol, column.lang)
        if row.measure == column.measure
    ]
    # The first paper that reports a value counts; others that report the same one add nothing.
    return list({(entry.metric, entry.model, entry.value): entry for entry in reversed(entries)}.values())[::-1]


def _published_of_absent(benchmark: Benchmark[Any]) -> list[LeaderboardEntry]:
    """Of a benchmark that was not run: its values by the measure that most are reported by, for each protocol and language."""
    columns: dict[tuple[str, str], dict[str, int]] = {}
    for paper in benchmark.published:
        counts = columns.setdefault((paper.protocol, paper.lang), {})
        for measure, by_metric in paper.values.items():
            counts[measure] = counts.get(measure, 0) + len(by_metric)
    for protocol in benchmark.protocols:
        for row in reported_values(benchmark.name, protocol, "en"):
            counts = columns.setdefault((protocol, "en"), {})
            counts[row.measure] = counts.get(row.measure, 0) + 1
    entries = []
    for (protocol, lang), counts in columns.items():
        main = [MEAN, *(benchmark.coefficients if isinstance(benchmark, RatingBenchmark) else ())]
        measure = next((name for name in main if name in counts), max(counts, key=lambda name: counts[name]))
        entries += published_entries(LeaderboardColumn(benchmark.name, protocol, lang, measure))
    return entries


def how_to_get(benchmark: Benchmark[Any]) -> str:
    """What the data set's own reader says of a folder without its files."""
    try:
        benchmark.load(_NOWHERE, next(iter(benchmark.protocols)), "en" if benchmark.in_english else "id")
    except InputError as error:
        return f"In its folder, {str(error).removeprefix(f'{_NOWHERE}: ')}"
    return benchmark.summary


def merge_leaderboards(boards: Iterable[tuple[str, Leaderboard]]) -> Leaderboard:
    """The computed values of several files as one; an error where two give one metric two values.

    Tests against different metrics cannot be shown together, and are left out.
    """
    entries: dict[tuple[LeaderboardColumn, str], LeaderboardEntry] = {}
    ceilings: dict[LeaderboardColumn, float] = {}
    against: set[str | None] = set()
    warnings: dict[str, None] = {}
    tests: dict[str, None] = {}
    for name, board in boards:
        for entry in board.entries:
            if entry.published:
                continue
            first = entries.setdefault((entry.column, entry.row), entry)
            if not _is_same(_bounds(first), _bounds(entry)) or first.signature != entry.signature:
                raise InputError(
                    f"{name}: {entry.metric} has {entry.value:.2f} on {entry.benchmark}, and {first.value:.2f} in another file,"
                    " with another interval or signature if that is the same. Give each contribution its own name ('caplens"
                    " leaderboard add')."
                )
            if not _is_same([first.p], [entry.p]):
                # A test depends on what else was run with it.
                entries[entry.column, entry.row] = first._replace(p=float("nan"))
        for column, ceiling in board.ceilings.items():
            if not _is_same([ceilings.setdefault(column, ceiling)], [ceiling]):
                raise InputError(
                    f"{name}: raters agree at {ceiling:.2f} on {column.title}, and at {ceilings[column]:.2f} by another file,"
                    " although their ratings are the same. Make one of them again."
                )
        against.add(board.against)
        warnings |= dict.fromkeys(board.warnings)
        tests |= dict.fromkeys(board.test_warnings)
    if len(against) == 1:
        return Leaderboard(list(entries.values()), ceilings, {}, against.pop(), list(warnings), list(tests))
    untested = [entry._replace(p=float("nan")) for entry in entries.values()]
    return Leaderboard(untested, ceilings, warnings=list(warnings))


def _is_same(first: Sequence[float], second: Sequence[float]) -> bool:
    return bool(np.array_equal(np.asarray(first, float), np.asarray(second, float), equal_nan=True))


def _bounds(entry: LeaderboardEntry) -> tuple[float, float, float]:
    return entry.value, entry.low, entry.high

"""Several benchmarks, languages and protocols in one run."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from caplens.benchmarks.base import Benchmark
from caplens.benchmarks.evaluate import evaluate_metrics
from caplens.benchmarks.published_by_model import reported_languages
from caplens.benchmarks.registry import get_benchmark, list_benchmarks
from caplens.benchmarks.translations import kept_qualities, languages_of
from caplens.comparison.languages import Quality, correlate_languages, read_quality
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.suite import SuiteResult

ALL = "all"
"""Stands for every protocol that there is."""


class SuiteOptions(NamedTuple):
    """What a run consists of."""

    names: Sequence[str] | None
    """None: every benchmark whose files are there."""
    protocols: Sequence[str] | None
    """None: the papers' own."""
    langs: Sequence[str] | None
    """None: all that a benchmark has."""
    translation_quality: str | PathLike[str] | None
    resamples: int
    seed: int


def run_suite(options: SuiteOptions, data: Path, metrics: Sequence[Metric], images: str | PathLike[str] | None) -> SuiteResult:
    """Evaluate metrics on every benchmark, language and protocol asked for."""
    quality = None if options.translation_quality is None else read_quality(options.translation_quality)
    kept: dict[str, Quality] = {}
    suite = SuiteResult([])
    benchmarks = list_benchmarks().values() if options.names is None else [get_benchmark(name) for name in options.names]
    for benchmark in benchmarks:
        home = benchmark.home(data)
        if options.names is None and not benchmark.is_in(home):
            suite.absent.append(benchmark.name)
            continue
        try:
            runs = list(_runs(benchmark, home, options))
        except InputError as error:
            suite.not_run[benchmark.name] = str(error)
            continue
        _run_benchmark(suite, benchmark, home, runs, options, metrics, images)
        if options.translation_quality is None and len(runs) > 1:
            kept[benchmark.name] = kept_qualities(benchmark, home)
        if options.langs is None and runs:
            _note_absent_languages(suite, benchmark, home)
    if not suite.results:
        raise InputError(next(iter(suite.not_run.values()), f"{data}: there are no files of any benchmark."))
    suite.correlations = _correlations(suite, quality, kept)
    return suite


def _run_benchmark(
    suite: SuiteResult,
    benchmark: Benchmark[Any],
    home: Path,
    runs: Sequence[tuple[str, str]],
    options: SuiteOptions,
    metrics: Sequence[Metric],
    images: str | PathLike[str] | None,
) -> None:
    """Evaluate metrics on a benchmark in each language and by each protocol."""
    for lang, protocol in runs:
        try:
            result = evaluate_metrics(
                benchmark, home, metrics, protocol, options.resamples, options.seed, images, lang, skip=True
            )
        except InputError as error:
            suite.not_run[f"{benchmark.name} ({lang}, {protocol})"] = str(error)
        else:
            suite.results.append(result)


def _note_absent_languages(suite: SuiteResult, benchmark: Benchmark[Any], home: Path) -> None:
    """Say for which languages papers report values and there are no captions here."""
    langs = {paper.lang for paper in benchmark.published} | set(reported_languages(benchmark.name))
    absent = sorted(langs - set(languages_of(benchmark, home)))
    result = next((result for result in reversed(suite.results) if result.benchmark == benchmark.name), None)
    if absent and result is not None:
        result.warnings.append(
            f"papers report {', '.join(absent)} too, which are not here; translations are read from {benchmark.name}.LANG.jsonl."
        )


def _runs(benchmark: Benchmark[Any], home: Path, options: SuiteOptions) -> Iterator[tuple[str, str]]:
    """The languages and protocols of one benchmark; of benchmarks that were not named, those that it has."""
    every = options.names is None
    langs = languages_of(benchmark, home) if options.langs is None or every else list(options.langs)
    protocols = list(benchmark.protocols) if options.protocols == [ALL] else options.protocols
    for lang in langs or ["en"]:
        for protocol in protocols or [next(iter(benchmark.protocols))]:
            unknown = protocol not in benchmark.protocols or bool(options.langs and lang not in options.langs)
            if not (every and unknown):
                yield lang, protocol


def _correlations(suite: SuiteResult, quality: Quality | None, kept: Mapping[str, Quality]) -> list[LanguageCorrelation]:
    """Where a benchmark was run on the same items in several languages; `kept` are qualities by id."""
    return [
        correlate_languages(results, quality or kept.get(results[0].benchmark) or None, by_id=quality is None)
        for results in suite.grouped("benchmark", "protocol")
        if len(results) > 1 and len(set.intersection(*(set(result.ids) for result in results))) > 1
    ]

"""Comparing metrics with human judgements."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Unpack

from caplens.api.metrics import Metrics, metrics_of_models
from caplens.benchmarks.base import Benchmark, BenchmarkData
from caplens.benchmarks.evaluate import evaluate_metrics
from caplens.benchmarks.own_ratings import measure_agreement
from caplens.benchmarks.registry import get_benchmark
from caplens.benchmarks.suite import SuiteOptions, run_suite
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.data.sample import Sample
from caplens.metrics.base import Metric
from caplens.metrics.options import ModelChoice, ScoringKeywords, ScoringOptions
from caplens.results.agreement import AgreementResult
from caplens.results.suite import SuiteResult
from caplens.stats import RESAMPLES


def bench(
    name: str | Benchmark[BenchmarkData],
    data: str | PathLike[str],
    metrics: Metrics | None = None,
    *,
    scores: Sequence[Metric] = (),
    images: str | PathLike[str] | None = None,
    models: Sequence[ModelChoice] | None = None,
    protocol: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> AgreementResult:
    """How well metrics agree with the people of a benchmark.

    Parameters
    ----------
    name
        As `caplens list benchmarks` shows it, or a `Benchmark` of your own.
    data
        The folder of its files, or of several data sets.
    metrics
        As for `score`; by default bleu1, bleu4, rouge-l, cider and length, and clipscore and refclipscore where images or a
        model are given. Without `metrics`, those that cannot be used here are left out.
    scores
        Metrics beside these, such as `ExternalScores` of a file.
    images
        The folder of the images, where it is not one that the data set brings.
    models
        Several models: scores that need one are computed with each, and called `clipscore[MODEL]`.
    protocol
        How ratings are aggregated; by default as papers do.
    resamples, seed, options, **keywords
        As for `score`; `lang` is the language of captions and references, where the data set has several.

    Returns
    -------
    AgreementResult
        Metric -> measure -> estimate beside published values, and the differences between metrics.

    Raises
    ------
    InputError
        If the benchmark does not exist, or its files are missing or damaged.

    Examples
    --------
    >>> result = caplens.bench("flickr8k-expert", "flickr8k", ["cider"])  # doctest: +SKIP
    >>> result.results["cider"]["tau-c"].value  # doctest: +SKIP
    """
    built = [*metrics_of_models("bench", metrics, images, models, options, keywords), *scores]
    lang = keywords.get("lang") or (options.lang if options else None) or "en"
    benchmark = get_benchmark(name) if isinstance(name, str) else name
    return evaluate_metrics(benchmark, data, built, protocol, resamples, seed, images, lang, skip=metrics is None)


def bench_many(
    names: Sequence[str] | None,
    data: str | PathLike[str],
    metrics: Metrics | None = None,
    *,
    scores: Sequence[Metric] = (),
    images: str | PathLike[str] | None = None,
    models: Sequence[ModelChoice] | None = None,
    protocols: Sequence[str] | None = None,
    langs: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    translation_quality: str | PathLike[str] | None = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> SuiteResult:
    """Several benchmarks, languages or protocols in one run, which share what is encoded.

    Parameters
    ----------
    names
        The benchmarks; None for every one whose files are in `data` or in its folders.
    protocols
        Those to run; `["all"]` for every one that there is. By default, the papers'.
    langs
        Those to run; None for all that a benchmark has.
    translation_quality
        A file with lang, caption and quality of translations, by which correlations across languages are split.
    data, metrics, scores, images, models, resamples, seed, options, **keywords
        As for `bench`. A metric is left out where a benchmark does not have what it needs.

    Returns
    -------
    SuiteResult
        The result of each benchmark, and what could not be run.

    Raises
    ------
    InputError
        If no benchmark could be run.

    Examples
    --------
    >>> suite = caplens.bench_many(["flickr8k-expert", "composite"], "data", ["cider", "length"])  # doctest: +SKIP
    >>> [result.benchmark for result in suite.results]  # doctest: +SKIP
    """
    built = [*metrics_of_models("bench", metrics, images, models, options, keywords), *scores]
    suite = SuiteOptions(names, protocols, langs, translation_quality, resamples, seed)
    return run_suite(suite, Path(data), built, images)


def agreement(
    samples: Captions,
    metrics: Metrics | None = None,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    models: Sequence[ModelChoice] | None = None,
    protocol: str = "mean",
    coefficients: Sequence[str] | None = None,
    criterion: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> AgreementResult:
    """How well metrics agree with one's own raters.

    Parameters
    ----------
    samples
        Captions with `ratings`: numbers, or records with value, rater, criterion and time.
    metrics, references, images, resamples, seed, options, **keywords
        As for `score`; the default metrics are those of `bench`.
    models
        Several models, as for `bench`.
    protocol
        How several ratings of a caption are aggregated: mean, median, or expanded (each rating is a data point).
    coefficients
        Those to compute, the main one first: tau-c, tau-b, spearman, pearson.
    criterion
        The criterion whose ratings count, where ratings have several.

    Returns
    -------
    AgreementResult
        Correlations with intervals by image, differences between metrics, and where the ratings allow them tie-calibrated
        pairwise accuracy, system-level correlations, Krippendorff's alpha and the human ceiling.

    Raises
    ------
    InputError
        If no caption has ratings, or all ratings are the same.

    Examples
    --------
    >>> rows = [{"id": n, "caption": "a dog" * n, "references": ["a dog runs"], "ratings": [n, n + 1]} for n in (1, 2, 3)]
    >>> result = caplens.agreement(rows, ["length"], resamples=10)
    >>> result.raters.raters
    2
    """
    built = metrics_of_models("agreement", metrics, images, models, options, keywords)
    lang = keywords.get("lang") or (options.lang if options else None)
    joined = list(read_captions(samples, references, images, lang))
    if metrics is None:
        built = _possible(built, joined)
    name = Path(samples).stem if isinstance(samples, str | PathLike) else "ratings"
    return measure_agreement(
        joined,
        built,
        name=name,
        protocol=protocol,
        coefficients=[coefficients] if isinstance(coefficients, str) else coefficients,
        criterion=criterion,
        resamples=resamples,
        seed=seed,
        lang=lang,
    )


def _possible(metrics: list[Metric], samples: Sequence[Sample]) -> list[Metric]:
    """Of metrics that nobody asked for, those that find what they need."""
    has_references, has_images = any(sample.references for sample in samples), any(sample.image for sample in samples)
    kept = [
        metric
        for metric in metrics
        if (has_references or "references" not in metric.needs) and (has_images or "image" not in metric.needs)
    ]
    return kept or metrics

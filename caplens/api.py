"""The three things one does with caplens, as functions: score captions, compare systems, run a benchmark."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

from caplens.bench import BenchResults, Comparison, compare_systems, evaluate, get_benchmark
from caplens.data import Sample, SampleFile, read_references, with_images, with_references
from caplens.data.languages import base_language
from caplens.metrics import DEFAULT_METRICS, Metric, Results, get_metric
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.scoring import run
from caplens.stats import bootstrap_pooled, interval
from caplens.text import default_tokenizer, get_tokenizer

Captions = Iterable[Sample] | str | PathLike[str]


def score(
    samples: Captions,
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    references: Mapping[str, Sequence[str]] | str | PathLike[str] | None = None,
    images: str | PathLike[str] | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    strict: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Results:
    """Score captions.

    `samples` is a file or any samples; `references` a file or id -> texts; `lang` the language of samples that name none;
    `df` a file to take CIDEr's document frequencies from. Corpus scores get confidence intervals by bootstrap over
    images, unless `resamples` is 0.
    """
    chosen = _metrics(metrics, tokenizer, lang, df)
    results = run(_samples(samples, references, images), chosen, strict=strict)
    if resamples:
        for name, found in results.metrics.items():
            if found.corpus_is_pooled:
                drawn = bootstrap_pooled(found.statistics, found.pool, results.groups, resamples, seed)
                results.intervals[name] = interval(drawn)
    return results


def compare(
    systems: Mapping[str, Captions],
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    references: Mapping[str, Sequence[str]] | str | PathLike[str] | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    correction: str = "holm",
) -> Comparison:
    """Score several systems on the same images and test their differences."""
    chosen = _metrics(metrics, tokenizer, lang, df)
    if isinstance(references, str | PathLike):
        references = read_references(references)
    results = {name: run(_samples(samples, references, None), chosen) for name, samples in systems.items()}
    return compare_systems(results, resamples, seed, correction)


def bench(
    name: str,
    data: str | PathLike[str],
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    protocol: str | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> BenchResults:
    """How well metrics agree with the people of a benchmark whose files are in the folder `data`."""
    return evaluate(get_benchmark(name), data, _metrics(metrics, tokenizer, None, None), protocol, resamples, seed)


def _metrics(
    names: Sequence[str | Metric], tokenizer: str | None, lang: str | None, df: str | PathLike[str] | None
) -> list[Metric]:
    base_language(lang or "en")
    frequency = None
    if df is not None:
        frequency = DocumentFrequency.load(df, get_tokenizer(tokenizer or default_tokenizer(lang), base_language(lang or "en")))
    unique = dict.fromkeys(names)
    return [get_metric(name, tokenizer, lang, frequency) if isinstance(name, str) else name for name in unique]


def _samples(
    captions: Captions,
    references: Mapping[str, Sequence[str]] | str | PathLike[str] | None,
    images: str | PathLike[str] | None,
) -> Iterable[Sample]:
    samples: Iterable[Sample] = SampleFile(captions) if isinstance(captions, str | PathLike) else captions
    if references is not None:
        if isinstance(references, str | PathLike):
            samples = with_references(samples, read_references(references), str(references))
        else:
            samples = with_references(samples, {str(key): tuple(texts) for key, texts in references.items()})
    return samples if images is None else with_images(samples, images)

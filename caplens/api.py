"""The three things one does with caplens, as functions: score captions, compare systems, run a benchmark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench import BenchResults, Comparison, compare_systems, evaluate, get_benchmark, pair
from caplens.data import References, Sample, SampleFile, read_references, with_images
from caplens.data.files import Place
from caplens.data.languages import base_language
from caplens.data.rows import sample_from_row
from caplens.errors import InputError
from caplens.metrics import DEFAULT_METRICS, Metric, Results, get_metric
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.scoring import run
from caplens.stats import bootstrap_pooled, get_correction, interval

Captions = Iterable[Sample | Mapping[str, Any]] | str | PathLike[str]
GivenReferences = References | Mapping[str, Sequence[str] | str] | str | PathLike[str] | None
Names = Sequence[str | Metric] | str


def score(
    samples: Captions,
    metrics: Names = DEFAULT_METRICS,
    *,
    references: GivenReferences = None,
    images: str | PathLike[str] | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    strict: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Results:
    """Score captions.

    `samples` is a file or any samples (or rows as in a file); `references` a file or id -> texts; `lang` the language of samples
    that name none; `df` a file to take CIDEr's document frequencies from. Corpus scores get confidence intervals by bootstrap
    over images, unless `resamples` is 0.
    """
    chosen = _metrics(metrics, tokenizer, lang, df)
    joined = _samples(samples, _references(references), lang)
    results = run(joined if images is None else with_images(joined, images), chosen, strict=strict)
    if resamples:
        for name, found in results.metrics.items():
            if found.corpus_is_pooled:
                scored = np.flatnonzero(~np.isnan(found.values))
                groups = [results.groups[row] for row in scored]
                drawn = bootstrap_pooled(found.statistics[scored], found.pool, groups, resamples, seed)
                results.intervals[name] = interval(drawn)
    return results


def compare(
    systems: Mapping[str, Captions],
    metrics: Names = DEFAULT_METRICS,
    *,
    references: GivenReferences = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    correction: str = "holm",
) -> Comparison:
    """Score several systems on the images that all of them have captions about, and test their differences."""
    get_correction(correction)
    chosen = _metrics(metrics, tokenizer, lang, df)
    known = _references(references)
    requires = frozenset(need for metric in chosen for need in metric.requires)
    paired, pairing = pair({name: _samples(captions, known, lang) for name, captions in systems.items()}, requires)
    comparison = compare_systems({name: run(samples, chosen) for name, samples in paired.items()}, resamples, seed, correction)
    comparison.failed = pairing.failed
    comparison.warnings += pairing.warnings()
    return comparison


def bench(
    name: str,
    data: str | PathLike[str],
    metrics: Names = DEFAULT_METRICS,
    *,
    protocol: str | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> BenchResults:
    """How well metrics agree with the people of a benchmark whose files are in the folder `data`."""
    return evaluate(get_benchmark(name), data, _metrics(metrics, tokenizer, None, None), protocol, resamples, seed)


def _metrics(names: Names, tokenizer: str | None, lang: str | None, df: str | PathLike[str] | None) -> list[Metric]:
    base_language(lang or "en")
    frequency = None if df is None else DocumentFrequency.load(df, tokenizer, lang)
    unique = dict.fromkeys([names] if isinstance(names, str) else names)
    return [get_metric(name, tokenizer, lang, frequency) if isinstance(name, str) else name for name in unique]


def _references(given: GivenReferences) -> References | None:
    if given is None or isinstance(given, References):
        return given
    return read_references(given) if isinstance(given, str | PathLike) else References.of(given)


def _samples(captions: Captions, references: References | None, lang: str | None) -> Iterable[Sample]:
    samples = SampleFile(captions) if isinstance(captions, str | PathLike) else _checked(captions)
    return samples if references is None else references.joined(samples, lang)


def _checked(captions: Iterable[Sample | Mapping[str, Any]]) -> Iterator[Sample]:
    """Samples from Python, which may be rows or hold what is no text."""
    if not isinstance(captions, Iterable):
        raise InputError(f"captions are a file or samples, not {captions!r}.")
    for number, sample in enumerate(captions, 1):
        if isinstance(sample, Sample):
            try:
                "".join((sample.caption or "", *sample.references))
            except TypeError:
                raise InputError(f"sample {sample.id!r}: its caption and references must be text.") from None
            yield sample
        elif isinstance(sample, Mapping):
            yield sample_from_row(dict(sample), Place(Path("samples"), number, "row"))
        else:
            raise InputError(f"row {number}: a caplens.Sample or a row with 'id' and 'caption' is needed, not {sample!r}.")

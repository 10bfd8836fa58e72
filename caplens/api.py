"""What one does with caplens, as functions: score captions, compare systems, judge metrics, perturb captions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from caplens.backbones import Backbone
from caplens.backbones.mini import DEFAULT
from caplens.bench import BENCHMARKS, BenchResults, Comparison, compare_systems, crossmodal3600, evaluate, get_benchmark, pair
from caplens.data import References, Sample, SampleFile, read_references, with_images
from caplens.data.files import Place, ensure_apart
from caplens.data.frames import is_frame, samples_of_frame
from caplens.data.languages import base_language
from caplens.data.rows import sample_from_row
from caplens.data.sample import Picture
from caplens.embed import Engine, open_engine
from caplens.errors import InputError
from caplens.metrics import DEFAULT_METRICS, Metric, Results, get_metric
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.embedding import EmbeddingMetric, Prompt
from caplens.metrics.registry import looks_at_images
from caplens.metrics.scoring import run
from caplens.perturb import Robustness, get_perturbations, measure_robustness
from caplens.stats import bootstrap_pooled, get_correction, interval

if TYPE_CHECKING:
    from caplens.report.documents import Found

Captions = Iterable[Sample | Mapping[str, Any]] | str | PathLike[str] | Any
"""A file, samples, rows as in a file, or a pandas or polars table."""
Images = str | PathLike[str] | Mapping[str, Picture] | None
"""A folder, or id -> image."""
GivenReferences = References | Mapping[str, Sequence[str] | str] | str | PathLike[str] | None
Names = Sequence[str | Metric] | str
Model = str | Backbone | Engine | None
Models = Model | Sequence[str | Backbone | Engine]


def score(
    samples: Captions,
    metrics: Names | None = None,
    *,
    references: GivenReferences = None,
    images: Images = None,
    model: Model = None,
    prompt: Prompt | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    strict: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Results:
    """Score captions.

    `samples` is a file, any samples (or rows as in a file), id -> caption, or a pandas or polars table; `references` a file or
    id -> texts; `lang` the language of samples that name none; `df` a file to take CIDEr's document frequencies from. `images`
    is the folder of the images, or id -> image; `model` the name of what encodes them (or an `Engine`, for other choices), else
    `caplens-mini`; `prompt` what goes before captions. Corpus scores get confidence intervals by bootstrap over images, unless
    `resamples` is 0.
    """
    chosen = _metrics(metrics, tokenizer, lang, df, model, prompt, images)
    joined = _samples(samples, _references(references), lang, images)
    results = run(joined, chosen, strict=strict)
    if resamples:
        langs = np.array([base_language(tag or lang or "en") for tag in results.langs])
        for name, found in results.metrics.items():
            if found.corpus_is_pooled:
                scored = np.flatnonzero(~np.isnan(found.values))
                results.intervals[name] = _interval(results, name, scored, resamples, seed)
                if len(found.by_language) > 1:
                    results.language_intervals[name] = {
                        one: _interval(results, name, scored[langs[scored] == one], resamples, seed) for one in found.by_language
                    }
    return results


def _interval(results: Results, metric: str, rows: NDArray[np.intp], resamples: int, seed: int) -> tuple[float, float]:
    """Of the corpus score of some captions, by bootstrap over images."""
    found = results[metric]
    groups = [results.groups[row] for row in rows]
    return interval(bootstrap_pooled(found.statistics[rows], found.pool, groups, resamples, seed))


def compare(
    systems: Mapping[str, Captions],
    metrics: Names | None = None,
    *,
    references: GivenReferences = None,
    images: Images = None,
    model: Model = None,
    prompt: Prompt | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    df: str | PathLike[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    correction: str = "holm",
) -> Comparison:
    """Score several systems on the images that all of them have captions about, and test their differences."""
    get_correction(correction)
    chosen = _metrics(metrics, tokenizer, lang, df, model, prompt, images)
    known = _references(references)
    if len(systems) < 2:
        raise InputError("a comparison needs at least two systems.")
    samples = {name: _samples(captions, known, lang, images) for name, captions in systems.items()}
    return _compared(samples, chosen, resamples, seed, correction)


def bench(
    name: str,
    data: str | PathLike[str],
    metrics: Names | None = None,
    *,
    images: str | PathLike[str] | None = None,
    model: Models = None,
    prompt: Prompt | None = None,
    protocol: str | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    lang: str = "en",
) -> BenchResults:
    """How well metrics agree with the people of a benchmark whose files are in the folder `data`, and images in `images`.

    `lang` takes captions and references in another language, where the data set has them. With several models, scores that look
    at the image are made with each, and called `clipscore[MODEL]`.
    """
    chosen = _bench_metrics(metrics, tokenizer, model, prompt)
    return evaluate(get_benchmark(name), data, chosen, protocol, resamples, seed, images, lang)


@dataclass(frozen=True)
class Suite:
    """Several benchmarks in one run."""

    results: list[BenchResults]
    failed: dict[str, str]
    """What could not be run, and why."""
    absent: list[str]
    """Benchmarks whose files are not at hand."""


def bench_many(
    names: Sequence[str] | None,
    data: str | PathLike[str],
    metrics: Names | None = None,
    *,
    images: str | PathLike[str] | None = None,
    model: Models = None,
    prompt: Prompt | None = None,
    protocols: Sequence[str] | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    langs: Sequence[str] | None = None,
) -> Suite:
    """Several benchmarks, languages or protocols in one run, which share what is encoded.

    Without `names`, every benchmark whose files are in `data` or in its folders, in those of the languages and protocols asked
    for that it has; without `langs`, all that it has. A protocol `all` stands for each that there is. A metric is left out where
    a benchmark has not what it needs.
    """
    chosen = _bench_metrics(metrics, tokenizer, model, prompt)
    suite = Suite([], {}, [])
    for benchmark in BENCHMARKS.values() if names is None else [get_benchmark(name) for name in names]:
        home = benchmark.home(Path(data))
        if names is None and not benchmark.is_in(home):
            suite.absent.append(benchmark.name)
            continue
        wanted = list(benchmark.protocols) if protocols == ["all"] else protocols or [next(iter(benchmark.protocols))]
        try:
            there = benchmark.languages(home) if langs is None or names is None else list(langs)
        except InputError as error:
            suite.failed[benchmark.name] = str(error)
            continue
        for lang in there or ["en"]:
            for protocol in wanted:
                if names is None and (protocol not in benchmark.protocols or (langs and lang not in langs)):
                    continue
                try:
                    suite.results.append(evaluate(benchmark, home, chosen, protocol, resamples, seed, images, lang, skip=True))
                except InputError as error:
                    suite.failed[f"{benchmark.name} ({lang}, {protocol})"] = str(error)
    if not suite.results:
        raise InputError(next(iter(suite.failed.values()), f"{data}: there are no files of any benchmark."))
    return suite


def crossmodal(
    systems: Mapping[str, Captions],
    data: str | PathLike[str],
    metrics: Names | None = None,
    *,
    images: Images = None,
    model: Model = None,
    prompt: Prompt | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    correction: str = "holm",
) -> dict[str, Comparison]:
    """Captions of systems against the references of Crossmodal-3600, whose folder is `data`: a comparison for each language.

    Captions have the image's key as `id`, and a `lang`. Document frequencies are counted over the references of captioned images.
    """
    chosen = _metrics(metrics, tokenizer, None, None, model, prompt, images)
    known = crossmodal3600.references(Path(data))
    by_language: dict[str, dict[str, list[Sample]]] = {}
    for name, captions in systems.items():
        for sample in _samples(captions, known, None, images):
            if sample.lang is None:
                raise InputError(f"{name}: the caption {sample.id!r} names no language; give each its 'lang'.")
            by_language.setdefault(base_language(sample.lang), {}).setdefault(name, []).append(sample)
    found = {lang: _compared(mine, chosen, resamples, seed, correction) for lang, mine in sorted(by_language.items())}
    described = len({image for image, _, _ in known})
    for comparison in found.values():
        if comparison.samples < described:
            comparison.warnings.append(
                f"{comparison.samples:,} of {described:,} images have captions; frequencies are counted over them."
            )
    return found


def _compared(
    systems: Mapping[str, Iterable[Sample]], metrics: list[Metric], resamples: int, seed: int, correction: str
) -> Comparison:
    """Systems on what all of them have captions about; a lone system on all that it has."""
    requires = frozenset(need for metric in metrics for need in metric.requires)
    paired, pairing = pair(systems, requires)
    results = {name: run(samples, metrics) for name, samples in paired.items()}
    comparison = compare_systems(results, resamples, seed, correction)
    comparison.failed = pairing.failed + len({row for result in results.values() for row in result.problems})
    comparison.warnings += pairing.warnings()
    return comparison


def robustness(
    samples: Captions,
    metrics: Names | None = None,
    kinds: Sequence[str] = ("all",),
    *,
    references: GivenReferences = None,
    images: Images = None,
    model: Model = None,
    prompt: Prompt | None = None,
    lang: str | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Robustness:
    """How much metrics notice that captions were made worse: repetition, removal, masking, jumble, substitution."""
    wanted = get_perturbations(kinds)
    chosen = _metrics(metrics, tokenizer, lang, None, model, prompt, images)
    joined = _samples(samples, _references(references), lang, images)
    return measure_robustness(joined, chosen, wanted, lang, resamples, seed)


def write_report(
    results: "Found | str | PathLike[str] | Mapping[str, Found | str | PathLike[str]]",
    output: str | PathLike[str] = "report.html",
    *,
    captions: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    references: str | PathLike[str] | None = None,
    images: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
    title: str = "caplens report",
) -> Path:
    """Write one HTML file about results; gives back its path.

    `results` is what `score`, `compare`, `bench` or `robustness` gave, a JSON file of theirs, or several of these by the
    name that the page gives them. Captions and images are shown where a file says where they are, or `captions` (a file, or
    one for each system; for a benchmark its folder, `data`) and `images` do.
    """
    from caplens.report.cases import Places
    from caplens.report.documents import Document, Found, read_documents
    from caplens.report.page import write_page

    named = results if isinstance(results, Mapping) else {"": results}
    files = [Path(path) for path in ([captions] if isinstance(captions, str | PathLike) else captions or [])]
    rest = [None if path is None else Path(path) for path in (references, images, data)]
    ensure_apart(Path(output), *files, rest[0])
    documents: list[Document] = []
    for name, found in named.items():
        if isinstance(found, str | PathLike):
            ensure_apart(Path(output), Path(found))
            documents += read_documents(Path(found), name)
        elif isinstance(found, get_args(Found)):
            documents.append(Document(name or "Results", found))
        else:
            raise InputError(f"a report is made of results and of files of theirs, not of {type(found).__name__}.")
    write_page(documents, Path(output), Places(files, *rest), title)
    return Path(output)


def _bench_metrics(names: Names | None, tokenizer: str | None, models: Models, prompt: Prompt | None) -> list[Metric]:
    """The metrics, those that look at images once for each model."""
    several = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    if len(several) < 2:
        return _metrics(names, tokenizer, None, None, several[0] if several else None, prompt)
    made: dict[str, Metric] = {}
    for model in several:
        for metric in map(copy, _metrics(names, tokenizer, None, None, model, prompt)):
            if isinstance(metric, EmbeddingMetric):
                metric.name = f"{metric.name}[{metric.engine.backbone.name}]"
            made.setdefault(metric.name, metric)
    return list(made.values())


def _metrics(
    names: Names | None,
    tokenizer: str | None,
    lang: str | None,
    df: str | PathLike[str] | None,
    model: Model,
    prompt: Prompt | None,
    images: Images = None,
) -> list[Metric]:
    """Without names: CLIPScore with a model or images, else what the COCO evaluation computes. Without a model: caplens-mini."""
    base_language(lang or "en")
    if names is None:
        names = DEFAULT_METRICS if model is None and images is None else ["clipscore"]
    listed = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    odd = next((name for name in listed if not isinstance(name, str | Metric)), None)
    if odd is not None:
        raise InputError(f"a metric is a name or a Metric, not {odd!r}; references are given with references=.")
    unique = dict.fromkeys(listed)
    frequency = None if df is None else DocumentFrequency.load(df, tokenizer, lang)
    if model is not None and not isinstance(model, str | Backbone | Engine):
        raise InputError(f"a model is a name, a Backbone or an Engine, not {model!r}.")
    if model is None and any(isinstance(name, str) and looks_at_images(name) for name in unique):
        model = DEFAULT
    engine = open_engine(model) if isinstance(model, str) else Engine(model) if isinstance(model, Backbone) else model
    return [get_metric(name, tokenizer, lang, frequency, engine, prompt) if isinstance(name, str) else name for name in unique]


def _references(given: GivenReferences) -> References | None:
    if given is None or isinstance(given, References):
        return given
    return read_references(given) if isinstance(given, str | PathLike) else References.of(given)


def _samples(captions: Captions, references: References | None, lang: str | None, images: Images) -> Iterable[Sample]:
    samples: Iterable[Sample]
    if isinstance(captions, str | PathLike):
        samples = SampleFile(captions)
    else:
        samples = samples_of_frame(captions) if is_frame(captions) else _checked(captions)
    joined = samples if references is None else references.joined(samples, lang)
    if isinstance(images, Mapping):
        return (replace(sample, image=images.get(sample.id, sample.image)) for sample in joined)
    return joined if images is None else with_images(joined, images)


def _checked(captions: Iterable[Sample | Mapping[str, Any]]) -> Iterator[Sample]:
    """Samples from Python, which may be rows or hold what is no text."""
    if isinstance(captions, Mapping):
        captions = [{"id": identifier, "caption": caption} for identifier, caption in captions.items()]
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

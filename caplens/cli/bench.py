"""`caplens bench`: how well metrics agree with the people of a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.benchmarks.evaluate import load_checked
from caplens.benchmarks.rating import RatedSamples
from caplens.benchmarks.registry import get_benchmark
from caplens.benchmarks.suite import SuiteOptions
from caplens.cli.command import command
from caplens.cli.options import (
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ScoresOption,
    Seed,
    SomeResamples,
    listed,
    with_external,
)
from caplens.cli.output import info, warn, write_result
from caplens.comparison import crossmodal3600
from caplens.data import write_samples
from caplens.data.replacing import ensure_writable
from caplens.data.sample import Rating
from caplens.errors import InputError
from caplens.metrics.registry import MetricChoice
from caplens.results.suite import SuiteResult
from caplens.stats import RESAMPLES

_ALL = "all"
EXAMPLES = """
caplens bench flickr8k-expert --data flickr8k
caplens bench flickr8k-expert --data flickr8k -m cider,bleu4,clipscore --images flickr8k/images
caplens bench flickr8k-expert --data flickr8k --images flickr8k/images -m clipscore --lang en,ja,tr
caplens bench flickr8k-expert --data flickr8k --protocol all
caplens bench all --data data --images photos -o all.json
caplens bench flickr8k-expert --data flickr8k --export-items items.jsonl
caplens bench flickr8k-expert --data flickr8k --scores mine.jsonl -m cider
"""


def bench(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    name: Annotated[str, typer.Argument(help="A benchmark, or all whose files are there; see 'caplens list benchmarks'.")],
    data: Annotated[Path, typer.Option(help="The folder with the data set's own files, or with several data sets.")],
    protocol: Annotated[
        str | None, typer.Option(help="How ratings are aggregated; all compares the protocols. \\[default: as papers do]")
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Languages of the captions (en,ja), or all. \\[default: en; all with 'bench all']")
    ] = None,
    scores: ScoresOption = None,
    export_items: Annotated[Path | None, typer.Option(help="Write what is judged, with its ids, to this file, and stop.")] = None,
    translation_quality: Annotated[
        Path | None, typer.Option(help="A file with lang, caption and quality of translations, for the tables across languages.")
    ] = None,
    resamples: SomeResamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Measure how well metrics agree with people, beside the published values.

    Without --metric: bleu1, bleu4, rouge-l, cider and length, and with --images or a --model clipscore and refclipscore, as far
    as the benchmark has what they need. Coefficients and accuracies are times 100, with confidence intervals by bootstrap over
    images.
    """
    form = output.checked()
    if name == crossmodal3600.NAME:
        raise InputError(f"{name} compares captioners; use 'caplens crossmodal --data {data} CAPTIONS…'.")
    if export_items is not None:
        _write_items(name, data, protocol, lang, export_items)
        return
    names = listed(metrics.metric)
    langs = _langs(name, lang)
    if translation_quality is not None and langs is not None and len(langs) < 2:
        raise InputError("--translation-quality is for several languages of one benchmark; name them with --lang.")
    models.announce(names)
    request = SuiteOptions(
        None if name == _ALL else [name],
        None if protocol is None else [protocol],
        langs,
        translation_quality,
        resamples,
        seed,
    )
    suite = _run(request, data, with_external(names, scores), models, metrics)
    write_result(suite, output.output, form, {"data": data, "images": models.images}, show=True)
    if translation_quality is not None and not suite.correlations:
        warn(["--translation-quality was not used: no benchmark has the same items in several languages."])
    if suite.failed:
        raise typer.Exit(3)


def _run(
    request: SuiteOptions,
    data: Path,
    chosen: Sequence[MetricChoice] | None,
    models: ModelOptions,
    metrics: MetricOptions,
) -> SuiteResult:
    """One benchmark in one language, for which a metric that cannot be used is an error, or several."""
    single = request.names and request.langs and len(request.langs) == 1 and request.protocols != [_ALL]
    if single and request.names and request.langs:
        result = api.bench(
            request.names[0],
            data,
            chosen,
            images=models.images,
            models=models.models,
            protocol=request.protocols[0] if request.protocols else None,
            resamples=request.resamples,
            seed=request.seed,
            **models.keywords(metrics, request.langs[0]),
        )
        return SuiteResult([result])
    return api.bench_many(
        request.names,
        data,
        chosen,
        images=models.images,
        models=models.models,
        protocols=request.protocols,
        langs=request.langs,
        translation_quality=request.translation_quality,
        resamples=request.resamples,
        seed=request.seed,
        **models.keywords(metrics),
    )


def _write_items(name: str, data: Path, protocol: str | None, lang: str | None, target: Path) -> None:
    """The captions of a benchmark as samples, with the human values where each has one."""
    ensure_writable(target)
    benchmark = get_benchmark(name)
    loaded = load_checked(benchmark, benchmark.home(data), protocol or next(iter(benchmark.protocols)), lang or "en")
    samples = loaded.samples
    if isinstance(loaded, RatedSamples):
        human = loaded.human.reshape(len(samples), -1).tolist()
        samples = [
            replace(sample, ratings=tuple(Rating(value) for value in values))
            for sample, values in zip(samples, human, strict=True)
        ]
    info(f"{write_samples(samples, target):,} captions written to {target}")


def _langs(name: str, lang: str | None) -> list[str] | None:
    """The languages asked for; None for all that there are."""
    if lang == _ALL or (lang is None and (name == _ALL or not get_benchmark(name).in_english)):
        return None
    return list(dict.fromkeys(part.strip() for part in (lang or "en").split(",") if part.strip()))


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(bench)

"""`caplens bench`: how well metrics agree with people."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens import api
from caplens.bench import BenchResults, CrossLanguage, correlate_languages, crossmodal3600, get_benchmark, read_quality
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.errors import InputError
from caplens.metrics.results import json_object
from caplens.report import Table
from caplens.report.views import (
    bench_table,
    benchmarks_table,
    by_language_table,
    by_protocol_table,
    cross_language_table,
    crossmodal_statistics_table,
    crossmodal_table,
    significance_table,
)
from caplens.version import __version__

_DEFAULT = ("bleu1", "bleu4", "rouge-l", "cider", "length")
_ALL = "all"

EXAMPLES = """
[bold]Examples[/bold]

caplens bench flickr8k-expert --data flickr8k

caplens bench flickr8k-expert --data flickr8k -m cider,bleu4,clipscore --images flickr8k/images

caplens bench flickr8k-expert --data flickr8k --images flickr8k/images -m clipscore --lang en,ja,tr

caplens bench flickr8k-expert --data flickr8k --protocol all

caplens bench all --data data --images photos -o all.json
"""


@with_models
def bench(
    name: Annotated[str, typer.Argument(help="A benchmark, or all whose files are there; see 'caplens list benchmarks'.")],
    data: Annotated[Path, typer.Option(help="The folder with the data set's own files, or with several data sets.")],
    metric: options.Metrics = None,
    protocol: Annotated[
        str | None, typer.Option(help="How ratings are aggregated; all compares the protocols. \\[default: as papers do]")
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Languages of the captions (en,ja), or all. \\[default: en; all with 'bench all']")
    ] = None,
    captions: Annotated[
        list[Path] | None,
        typer.Option(help="For crossmodal-3600: captions of a system, with 'lang'; may be given several times."),
    ] = None,
    quality: Annotated[
        Path | None, typer.Option(help="A file with lang, caption and quality of translations, for the tables across languages.")
    ] = None,
    tokenizer: options.Tokenizer = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    *,
    models: Models,
) -> None:
    """Measure how well metrics agree with people, beside the published values.

    Without --metric: bleu1, bleu4, rouge-l, cider and length, and with --images or a --model clipscore and refclipscore, as far
    as the benchmark has what they need. Coefficients and accuracies are times 100, with confidence intervals by bootstrap over
    images.
    """
    form = choose_format(output, format)
    if not resamples:
        raise InputError("a benchmark needs resamples for its intervals; give at least 1 with --resamples.")
    names = options.metric_names(metric, (*_DEFAULT, "clipscore", "refclipscore") if models.chosen else _DEFAULT)
    if name == crossmodal3600.NAME:
        _crossmodal(
            data,
            captions or [],
            names if metric else ["cider", *(["clipscore"] if models.chosen else [])],
            models,
            tokenizer,
            resamples,
            seed,
            quiet,
            lambda document, tables: deliver(output, form, document, tables),
        )
        return
    if captions:
        raise InputError(f"--captions is for {crossmodal3600.NAME}; other benchmarks bring their captions.")
    benchmarks = None if name == _ALL else [name]
    langs = _langs(name, lang)
    known_quality = None if quality is None else read_quality(quality)
    with progress_bar(quiet):
        common: dict[str, Any] = {
            "images": models.images,
            "model": models.engines(names),
            "prompt": models.prompt,
            "tokenizer": tokenizer,
            "resamples": resamples,
            "seed": seed,
        }
        failed: dict[str, str] = {}
        if benchmarks and langs and len(langs) == 1 and metric and protocol != _ALL:
            found = [api.bench(name, data, names, protocol=protocol, lang=langs[0], **common)]
        else:
            chosen = None if protocol is None else [protocol]
            found, failed = api.bench_many(benchmarks, data, names, protocols=chosen, langs=langs, **common)
        across = _across(found, known_quality)
    tables = _tables(found, across, protocol == _ALL)
    deliver(
        output,
        form,
        lambda: _document(found, across, failed),
        tables,
        (lambda: benchmarks_table(found)) if len(found) > 1 else None,
    )
    warn(_warnings(found, failed))
    lost = sum(results.failed for results in found)
    if lost:
        warn([f"{lost} captions have no score from every metric and were left out."])
    if lost or any("not at hand" not in why for why in failed.values()):
        raise typer.Exit(3)


def _crossmodal(
    data: Path,
    captions: Sequence[Path],
    names: Sequence[str],
    models: Models,
    tokenizer: str | None,
    resamples: int,
    seed: int,
    quiet: bool,
    show: Callable[[Callable[[], dict[str, Any]], list[Table]], None],
) -> None:
    """What the data set holds beside table 1 of its paper or, with captions, each system's scores by language."""
    if not captions:
        statistics = crossmodal3600.statistics(data)
        document = {
            "caplens": __version__,
            "benchmark": crossmodal3600.NAME,
            "statistics": [json_object(one) for one in statistics],
        }
        show(lambda: document, [crossmodal_statistics_table(statistics)])
        return
    systems = {path.stem: path for path in captions}
    if len(systems) < len(captions):
        raise InputError("two files of captions have the same name; a system is called after its file.")
    with progress_bar(quiet):
        found = api.crossmodal(
            systems, data, names, images=models.images, model=models.open(names), prompt=models.prompt, tokenizer=tokenizer,
            resamples=resamples, seed=seed,
        )  # fmt: skip
    by_language: dict[str, Any] = {
        "caplens": __version__,
        "benchmark": crossmodal3600.NAME,
        "languages": {lang: one.to_dict() for lang, one in found.items()},
    }
    show(lambda: by_language, [crossmodal_table(found)])
    warn([f"{lang}: {warning}" for lang, one in found.items() for warning in one.warnings])


def _langs(name: str, given: str | None) -> list[str] | None:
    """The languages asked for; None for all that there are."""
    if given == _ALL or (given is None and (name == _ALL or not get_benchmark(name).in_english)):
        return None
    return [lang.strip() for lang in (given or "en").split(",") if lang.strip()]


def _by_benchmark(found: Sequence[BenchResults]) -> dict[tuple[str, str], list[BenchResults]]:
    grouped: dict[tuple[str, str], list[BenchResults]] = {}
    for results in found:
        grouped.setdefault((results.benchmark, results.protocol), []).append(results)
    return grouped


def _across(found: Sequence[BenchResults], quality: dict[tuple[str, str], float] | None) -> list[CrossLanguage]:
    """Where a benchmark was run on the same items in several languages."""
    return [
        correlate_languages(some, quality)
        for some in _by_benchmark(found).values()
        if len(some) > 1 and len(set.intersection(*(set(results.ids) for results in some))) > 1
    ]


def _tables(found: Sequence[BenchResults], across: Sequence[CrossLanguage], protocols: bool) -> list[Table]:
    if len(found) == 1:
        return [bench_table(found[0]), *([significance_table(found[0])] if found[0].contrasts else [])]
    if protocols:
        by_name: dict[tuple[str, str], list[BenchResults]] = {}
        for results in found:
            by_name.setdefault((results.benchmark, results.lang), []).append(results)
        return [by_protocol_table(some) for some in by_name.values()]
    tables = [by_language_table(some) if len(some) > 1 else bench_table(some[0]) for some in _by_benchmark(found).values()]
    return [*tables, *(cross_language_table(one, metric) for one in across for metric in one.correlations)]


def _document(found: Sequence[BenchResults], across: Sequence[CrossLanguage], failed: dict[str, str]) -> dict[str, Any]:
    if len(found) == 1 and not failed:
        return found[0].to_dict()
    return {
        "caplens": __version__,
        "benchmarks": [results.to_dict() for results in found],
        "across_languages": [one.to_dict() for one in across],
        "not_run": failed,
    }


def _warnings(found: Sequence[BenchResults], failed: dict[str, str]) -> list[str]:
    if len(found) == 1:
        return [*found[0].warnings, *failed.values()]
    langs: dict[tuple[str, str], list[str]] = {}
    for results in found:
        for warning in results.warnings:
            langs.setdefault((results.benchmark, warning), []).append(results.lang)
    said = [f"{benchmark} ({', '.join(dict.fromkeys(some))}): {warning}" for (benchmark, warning), some in langs.items()]
    absent = [name for name, why in failed.items() if "not at hand" in why]
    broken = [f"{name} was not run: {why}" for name, why in failed.items() if name not in absent]
    return [*said, *broken, *([f"the files of {', '.join(absent)} are not at hand."] if absent else [])]

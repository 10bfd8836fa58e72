"""`caplens bench`: how well metrics agree with people."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens import api
from caplens.bench import (
    BenchResults,
    CrossLanguage,
    Judgements,
    correlate_languages,
    crossmodal3600,
    get_benchmark,
    load_checked,
    read_quality,
)
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, say, warn
from caplens.data import write_samples
from caplens.data.files import ensure_writable
from caplens.errors import InputError
from caplens.metrics.given import GivenScores
from caplens.report import Table
from caplens.report.views import (
    bench_table,
    benchmarks_table,
    by_language_table,
    by_protocol_table,
    cross_language_table,
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

caplens bench flickr8k-expert --data flickr8k --items items.jsonl

caplens bench flickr8k-expert --data flickr8k --scores mine.jsonl -m cider
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
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scores of your own metric: JSONL with id and score, called after the file; may be given several times."
        ),
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Write what is judged, with its ids, to this file, and stop.")] = None,
    quality: Annotated[
        Path | None, typer.Option(help="A file with lang, caption and quality of translations, for the tables across languages.")
    ] = None,
    tokenizer: options.Tokenizer = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: Annotated[int, typer.Option(min=1, help="Resamples for intervals and tests.")] = 1000,
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
    default = () if scores else (*_DEFAULT, "clipscore", "refclipscore") if models.chosen else _DEFAULT
    names = options.listed(metric, default)
    given = [GivenScores.read(path) for path in scores or []]
    if name == crossmodal3600.NAME:
        raise InputError(f"{name} compares captioners; use 'caplens crossmodal --data {data} CAPTIONS…'.")
    if items is not None:
        _write_items(name, data, protocol, lang, items)
        return
    benchmarks = None if name == _ALL else [name]
    langs = _langs(name, lang)
    if quality is not None and langs is not None and len(langs) < 2:
        raise InputError("--quality is for several languages of one benchmark; name them with --lang.")
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
        if benchmarks and langs and len(langs) == 1 and (metric or given) and protocol != _ALL:
            suite = api.Suite([api.bench(name, data, [*names, *given], protocol=protocol, lang=langs[0], **common)], {}, [])
        else:
            protocols = None if protocol is None else [protocol]
            suite = api.bench_many(benchmarks, data, [*names, *given], protocols=protocols, langs=langs, **common)
        across = _across(suite.results, known_quality)
    found = suite.results
    tables = _tables(found, across, protocol == _ALL)
    deliver(
        output,
        form,
        lambda: _document(suite, across),
        tables,
        lambda: benchmarks_table(found),
        {"data": data, "images": models.images},
    )
    warn(_warnings(suite))
    if quality is not None and not across:
        warn(["--quality was not used: no benchmark has the same items in several languages."])
    if suite.failed or any(results.failed for results in found):
        raise typer.Exit(3)


def _write_items(name: str, data: Path, protocol: str | None, lang: str | None, target: Path) -> None:
    """The captions of a benchmark as samples, with the human values where each has one."""
    ensure_writable(target)
    benchmark = get_benchmark(name)
    loaded = load_checked(benchmark, benchmark.home(data), protocol or next(iter(benchmark.protocols)), lang or "en")
    samples = loaded.samples
    if isinstance(loaded, Judgements):
        human = loaded.human.reshape(len(samples), -1).tolist()
        samples = [replace(sample, ratings=tuple(values)) for sample, values in zip(samples, human, strict=True)]
    say(f"{write_samples(samples, target):,} captions written to {target}")


def _langs(name: str, given: str | None) -> list[str] | None:
    """The languages asked for; None for all that there are."""
    if given == _ALL or (given is None and (name == _ALL or not get_benchmark(name).in_english)):
        return None
    return list(dict.fromkeys(lang.strip() for lang in (given or "en").split(",") if lang.strip()))


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


def _document(suite: api.Suite, across: Sequence[CrossLanguage]) -> dict[str, Any]:
    if len(suite.results) == 1 and not suite.failed and not suite.absent:
        return suite.results[0].to_dict()
    return {
        "caplens": __version__,
        "benchmarks": [results.to_dict() for results in suite.results],
        "across_languages": [one.to_dict() for one in across],
        "not_run": suite.failed | dict.fromkeys(suite.absent, "its files are not at hand"),
    }


def _warnings(suite: api.Suite) -> list[str]:
    """Each once, with all the languages that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for results in suite.results:
        for warning in results.warnings:
            about.setdefault((results.benchmark, warning), []).append(results.lang)
    said = [f"{benchmark} ({', '.join(dict.fromkeys(langs))}): {warning}" for (benchmark, warning), langs in about.items()]
    said += [f"{name} was not run: {why}" for name, why in suite.failed.items()]
    return [*said, *([f"the files of {', '.join(suite.absent)} are not at hand."] if suite.absent else [])]

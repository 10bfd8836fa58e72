"""`caplens bench`: how well metrics agree with the people of a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.benchmarks.evaluate import item_ids, load_checked
from caplens.benchmarks.leaderboard import build_leaderboard
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
)
from caplens.cli.output import Format, info, warn, write_result, write_tables
from caplens.cli.report import check_page
from caplens.comparison import crossmodal3600
from caplens.data import write_samples
from caplens.data.replacing import ensure_writable
from caplens.data.sample import Rating
from caplens.errors import InputError
from caplens.metrics.external import ExternalScores
from caplens.results.suite import SuiteResult
from caplens.stats import RESAMPLES

_ALL = "all"
EXAMPLES = """
caplens bench flickr8k-expert --data flickr8k
caplens bench flickr8k-expert --data flickr8k -m cider,bleu4,clipscore --images flickr8k/images
caplens bench flickr8k-expert --data flickr8k --images flickr8k/images -m clipscore --lang en,ja,tr
caplens bench flickr8k-expert --data flickr8k --protocol all
caplens bench all --data data --images photos --against clipscore -o all.json --page leaderboard.html
caplens bench flickr8k-expert --data flickr8k --export-items items.jsonl
caplens bench flickr8k-expert --data flickr8k --scores mine.jsonl
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
    against: Annotated[str | None, typer.Option(help="The metric that others are tested against in the leaderboard.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the leaderboard to this HTML file.")] = None,
    resamples: SomeResamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Measure how well metrics agree with people, beside the published values; of several benchmarks, a leaderboard at the end.

    Without --metric: bleu1, bleu4, rouge-l, cider and length, and with --images or a --model clipscore and refclipscore, as far
    as the benchmark has what they need. Coefficients and accuracies are times 100, with confidence intervals by bootstrap over
    images.
    """
    form = output.checked()
    if page is not None:
        check_page(page)
    if name == crossmodal3600.NAME:
        raise InputError(f"{name} compares captioners; use 'caplens crossmodal --data {data} CAPTIONS…'.")
    if export_items is not None:
        _write_items(name, data, protocol, lang, export_items)
        return
    names = listed(metrics.metric)
    langs = _langs(name, lang)
    if translation_quality is not None and langs is not None and len(langs) < 2:
        raise InputError("--translation-quality is for several languages of one benchmark; name them with --lang.")
    _check_against(against, names, scores)
    models.announce(names)
    request = SuiteOptions(
        None if name == _ALL else [name],
        None if protocol is None else [protocol],
        langs,
        translation_quality,
        resamples,
        seed,
    )
    suite = _run(request, data, names, scores, models, metrics)
    write_result(suite, output.output, form, {"data": data, "images": models.images}, show=True)
    _show_leaderboard(suite, form, output.output, against, page)
    if translation_quality is not None and not suite.correlations:
        warn(["--translation-quality was not used: no benchmark has the same items in several languages."])
    if suite.failed:
        raise typer.Exit(3)


def _show_leaderboard(suite: SuiteResult, form: Format, output: Path | None, against: str | None, page: Path | None) -> None:
    """The leaderboard of several benchmarks, where tables are printed, and its page."""
    printed = form is Format.table or output is not None
    several = len({result.benchmark for result in suite.results}) > 1
    if page is None and against is None and not (several and printed):
        return
    board = build_leaderboard(suite.results, against)
    not_run = {name.partition(" ")[0]: why for name, why in suite.not_run.items()}
    unasked = "It was not asked for, or has no captions in these languages."
    board.absent = {name: why if name in suite.absent else not_run.get(name, unasked) for name, why in board.absent.items()}
    if printed:
        write_tables(board.tables(), None, Format.table, board.to_dict)
    if page is not None:
        from caplens.report.leaderboard_page import write_leaderboard

        write_leaderboard(board, page)
        info(f"written to {page}")


def _check_against(against: str | None, names: Sequence[str] | None, scores: Sequence[Path] | None) -> None:
    """An error before any work if what others are tested against is not among the metrics that were named."""
    known = [*(names or ()), *(path.stem for path in scores or ())]
    if against is not None and names and against not in known:
        raise InputError(f"--against {against}: this is none of the metrics of this run: {', '.join(known)}.")


def _run(
    request: SuiteOptions,
    data: Path,
    names: list[str] | None,
    scores: Sequence[Path] | None,
    models: ModelOptions,
    metrics: MetricOptions,
) -> SuiteResult:
    """One benchmark in one language, for which a metric that cannot be used is an error, or several."""
    external = [ExternalScores.read(path) for path in scores or ()]
    single = request.names and request.langs and len(request.langs) == 1 and request.protocols != [_ALL]
    if single and request.names and request.langs:
        result = api.bench(
            request.names[0],
            data,
            names,
            scores=external,
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
        names,
        scores=external,
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
    """Each distinct caption of a benchmark once, as a sample with all its human values."""
    ensure_writable(target)
    benchmark = get_benchmark(name)
    loaded = load_checked(benchmark, benchmark.home(data), protocol or next(iter(benchmark.protocols)), lang or "en")
    human = loaded.human.reshape(len(loaded.samples), -1).tolist() if isinstance(loaded, RatedSamples) else None
    ratings: dict[str, list[Rating]] = {}
    for row, item in enumerate(item_ids(loaded.samples)):
        ratings.setdefault(item, []).extend(Rating(value) for value in (human[row] if human else ()))
    first = {sample.id: sample for sample in loaded.samples}
    samples = [replace(first[item], ratings=tuple(of_item)) for item, of_item in ratings.items()]
    info(f"{write_samples(samples, target):,} captions written to {target}")


def _langs(name: str, lang: str | None) -> list[str] | None:
    """The languages asked for; None for all that there are."""
    if lang == _ALL or (lang is None and (name == _ALL or not get_benchmark(name).in_english)):
        return None
    return list(dict.fromkeys(part.strip() for part in (lang or "en").split(",") if part.strip()))


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(bench)

"""`caplens score`: scores of captions."""

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import (
    CalibrationOption,
    ColumnOptions,
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ReferencesOption,
    Resamples,
    Seed,
    listed,
)
from caplens.cli.output import Format, check_unused, error, names_folder, write_result
from caplens.data.columns import parsed_columns
from caplens.errors import InputError
from caplens.metrics.defaults import EXAMPLE_METRICS, default_metrics
from caplens.metrics.scoring import KeepColumns
from caplens.results.scores import ScoreResult
from caplens.results.thresholds import Threshold, check_thresholds, missed_thresholds
from caplens.stats import RESAMPLES

EXAMPLES = """
caplens score --example
caplens score captions.jsonl
caplens score results.json --references captions_val2014.json -m cider -m bleu4
caplens score captions.jsonl --images photos
caplens score captions.jsonl --images photos -m clipscore,refclipscore --model hf:openai/clip-vit-base-patch32
caplens score captions.csv --lang ja --tokenizer ja-mecab -o scores.json
caplens score captions.parquet -m cider --keep-columns all -o scores.parquet
caplens score captions.jsonl --images photos -m clipscore --fail-under clipscore=0.35
caplens score 'parts/*.jsonl' --images photos -m clipscore,cider -o scores/
"""


def score(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    columns: ColumnOptions,
    captions: Annotated[
        Path | None,
        typer.Argument(
            help="JSONL, CSV, TSV, Excel, Parquet, COCO results, {id: caption}, a tar of WebDataset or a folder of photos,"
            " detected from content; - is standard input."
        ),
    ] = None,
    references: ReferencesOption = None,
    lang: Lang = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first caption that cannot be scored.")] = False,
    keep_columns: Annotated[
        list[str] | None, typer.Option(help="Columns of the input to carry into the output: names with commas, or all.")
    ] = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    via_english: Annotated[
        str | None, typer.Option(help="Translate captions into English by this translator first ('caplens translate --help').")
    ] = None,
    calibration: CalibrationOption = None,
    pool_languages: Annotated[
        bool, typer.Option("--pool-languages", help="Give CIDEr one score over languages whose tokens are not comparable.")
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            help="The exit status is 4 where the corpus score is lower, as in clipscore=0.35, or fewer captions reach it, as"
            " in clipscore=0.35@95%. May be repeated."
        ),
    ] = None,
    keep_vectors: Annotated[
        bool, typer.Option("--keep-vectors", help="With a folder as output: write the vectors of a cluster into it, too.")
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Score the example inside the package.")] = False,
) -> None:
    """Score captions against references and images: per caption, per language and over all, with error bars.

    Without --metric: clipscore with --images or a --model, else bleu1 to bleu4, rouge-l and cider. A caption that a metric cannot
    score (no references, an image that cannot be read) gets null and a reason there, and is scored by the others. The exit status
    is 3 where a caption got no score at all, or something that was given could not be used, and 4 where --fail-under is missed.

    With a folder or URL as output, captions (files by name with wildcards, a folder, or a URL such as s3://bucket/*.parquet) are
    scored partition by partition, on this machine or with --engine ray on a cluster; a job that was stopped goes on there.
    """
    if captions is not None and names_folder(output.output, output.format):
        check_unused({"--references": references, "--strict": strict, "--via-english": via_english, "--calibration": calibration,
                       "--pool-languages": pool_languages, "--fail-under": fail_under, "--example": example})  # fmt: skip
        _score_partitions(captions, output, metrics, models, columns, lang, _kept(keep_columns), resamples, seed, keep_vectors)
        return
    _check_inputs(captions, references, models, via_english, example=example, keep_vectors=keep_vectors)
    form = output.checked(captions, references, metrics.df, calibration)
    thresholds = [Threshold.parse(text) for text in fail_under or []]
    names = listed(metrics.metric) or (list(EXAMPLE_METRICS) if example else None)
    if names:
        check_thresholds(thresholds, names)
    kept = _kept(keep_columns)
    options = models.scoring(metrics, lang, names)
    if via_english is not None and captions is not None:
        result = api.score_via_english(
            captions, names, translator=via_english, images=models.images, strict=strict, keep_columns=kept,
            resamples=resamples, seed=seed, options=options,
        )  # fmt: skip
    else:
        with as_file(files("caplens").joinpath("examples")) as shipped:
            result = api.score(
                shipped / "good.jsonl" if captions is None else columns.samples(captions),
                names,
                references=references,
                images=shipped if captions is None else models.images,
                strict=strict,
                keep_columns=kept,
                resamples=resamples,
                seed=seed,
                calibration=calibration,
                pool_languages=pool_languages,
                options=options,
            )
    inputs = {
        "captions": captions, "references": references, "images": models.images, "lang": lang, "columns": columns.joined,
    }  # fmt: skip
    write_result(result, output.output, form, None if example else inputs)
    _end(result, thresholds)


def _kept(keep_columns: list[str] | None) -> KeepColumns:
    names = listed(keep_columns)
    return names == ["all"] or names or False


def _score_partitions(
    captions: Path, output: OutputOptions, metrics: MetricOptions, models: ModelOptions, columns: ColumnOptions,
    lang: str | None, keep_columns: KeepColumns, resamples: int, seed: int, keep_vectors: bool,
) -> None:  # fmt: skip
    names = listed(metrics.metric) or default_metrics("score", with_images=models.images is not None or bool(models.model))
    options = models.scoring(metrics, lang, names)
    result = api.score_partitions(
        captions, str(output.output), names, images=models.images, columns=parsed_columns(columns.columns or []),
        keep_columns=keep_columns, resamples=resamples, seed=seed, keep_vectors=keep_vectors,
        options=options,
    )  # fmt: skip
    write_result(result, None, Format.table)
    if result.failed:
        raise typer.Exit(3)


def _end(result: ScoreResult, thresholds: Sequence[Threshold]) -> None:
    """End with the exit status that says how it went."""
    check_thresholds(thresholds, list(result.metrics))
    missed = missed_thresholds(result, thresholds)
    for sentence in missed:
        error(sentence)
    if missed:
        raise typer.Exit(4)
    if result.failed:
        raise typer.Exit(3)


def _check_inputs(
    captions: Path | None, references: Path | None, models: ModelOptions, via_english: str | None, *, example: bool,
    keep_vectors: bool,
) -> None:  # fmt: skip
    """An error for inputs that contradict each other."""
    if keep_vectors:
        raise InputError("--keep-vectors writes into the folder of the output; name a folder with --output.")
    if (captions is None) != example:
        raise InputError(
            "name a file of captions, or use --example, not both." if example else "name a file of captions, or use --example."
        )
    if example and (models.images is not None or references is not None):
        raise InputError("the example has its own images and references; leave --images and --references off.")
    if via_english is not None and (captions is None or references is not None):
        raise InputError("--via-english translates captions of a file, and takes no references: it is for scores with images.")


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(score)

"""`caplens score`: scores of captions."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.errors import InputError
from caplens.metrics import DEFAULT_METRICS
from caplens.report.views import languages_table, samples_table, scores_table

_SHOWN_ERRORS = 5

EXAMPLES = """
[bold]Examples[/bold]

caplens score --example

caplens score captions.jsonl

caplens score results.json --references captions_val2014.json -m cider -m bleu4

caplens score captions.jsonl --images photos

caplens score captions.jsonl --images photos -m clipscore,refclipscore --model hf:openai/clip-vit-base-patch32

caplens score captions.csv --lang ja --tokenizer ja-mecab -o scores.json
"""


@with_models
def score(
    captions: Annotated[
        Path | None,
        typer.Argument(
            help="JSONL, CSV, TSV, Parquet, COCO results or {id: caption}; told by what it holds; - is standard input."
        ),
    ] = None,
    references: options.References = None,
    metric: options.Metrics = None,
    lang: options.Lang = None,
    tokenizer: options.Tokenizer = None,
    df: options.DocumentFrequencies = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first caption that cannot be scored.")] = False,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    example: Annotated[bool, typer.Option("--example", help="Score the example that comes with caplens.")] = False,
    *,
    models: Models,
) -> None:
    """Score captions against references and images: per caption, per language and over all, with error bars.

    Without --metric: clipscore with --images or a --model, else bleu1 to bleu4, rouge-l and cider. Captions that cannot be
    scored (no caption, no references, an image that cannot be read) get null and a reason; the exit status is then 3.
    """
    if (captions is None) != example:
        raise InputError(
            "name a file of captions, or use --example, not both." if example else "name a file of captions, or use --example."
        )
    if example and (models.images is not None or references is not None):
        raise InputError("the example has its own images and references; leave --images and --references off.")
    form = choose_format(output, format, captions, references, df)
    names = options.listed(metric, options.OF_EXAMPLE if example else ("clipscore",) if models.chosen else DEFAULT_METRICS)
    with progress_bar(quiet), as_file(files("caplens").joinpath("examples")) as shipped:
        results = api.score(
            shipped / "good.jsonl" if captions is None else captions,
            names,
            references=references,
            images=shipped if captions is None else models.images,
            model=models.open(names),
            prompt=models.prompt,
            lang=lang,
            tokenizer=tokenizer,
            df=df,
            strict=strict,
            resamples=resamples,
            seed=seed,
        )
    tables = [scores_table(results)]
    by_language = languages_table(results)
    if by_language is not None:
        tables.append(by_language)
    inputs = {"captions": captions, "references": references, "images": models.images, "lang": lang}
    deliver(output, form, results.to_dict, tables, lambda: samples_table(results), None if example else inputs)
    warn(results.warnings)
    if results.failed:
        shown = [f"{identifier}: {reason}" for identifier, reason in list(results.errors.items())[:_SHOWN_ERRORS]]
        more = [f"… and {results.failed - len(shown)} more"] if results.failed > len(shown) else []
        warn([f"{results.failed} of {len(results.ids)} captions have no score ({'; '.join(shown + more)})."])
        raise typer.Exit(3)

"""`caplens crossmodal`: captioners on Crossmodal-3600, language by language."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.bench import crossmodal3600
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.errors import InputError
from caplens.metrics.results import json_object
from caplens.report.views import crossmodal_rows, crossmodal_statistics_table, crossmodal_table
from caplens.version import __version__

EXAMPLES = """
[bold]Examples[/bold]

caplens crossmodal --data xm3600

caplens crossmodal a.jsonl b.jsonl --data xm3600

caplens crossmodal a.jsonl --data xm3600 --images xm3600/images -m cider,clipscore -o a.json
"""


@with_models
def crossmodal(
    data: Annotated[Path, typer.Option(help="The folder with captions.jsonl of Crossmodal-3600.")],
    captions: Annotated[
        list[Path] | None, typer.Argument(help="Captions of a system each, with 'lang' and the image's key as 'id'.")
    ] = None,
    metric: options.Metrics = None,
    tokenizer: options.Tokenizer = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    *,
    models: Models,
) -> None:
    """Score captioners against Crossmodal-3600, whose references are in 36 languages, and test their differences.

    Without captions: what the data set holds, beside table 1 of its paper. A system is called after its file. Without --metric:
    cider, and with --images or a --model clipscore too.
    """
    files = captions or []
    form = choose_format(output, format, *files)
    if not files:
        statistics = crossmodal3600.statistics(data)
        document = {
            "caplens": __version__,
            "benchmark": crossmodal3600.NAME,
            "statistics": [json_object(one) for one in statistics],
        }
        deliver(output, form, lambda: document, [crossmodal_statistics_table(statistics)])
        return
    systems = {path.stem: path for path in files}
    if len(systems) < len(files):
        raise InputError("two files of captions have the same name; a system is called after its file.")
    names = options.listed(metric, ("cider", "clipscore") if models.chosen else ("cider",))
    with progress_bar(quiet):
        found = api.crossmodal(
            systems,
            data,
            names,
            images=models.images,
            model=models.open(names),
            prompt=models.prompt,
            tokenizer=tokenizer,
            resamples=max(1, resamples),
            seed=seed,
        )
    by_language = {lang: comparison.to_dict() for lang, comparison in found.items()}
    whole = {"caplens": __version__, "benchmark": crossmodal3600.NAME, "languages": by_language}
    deliver(output, form, lambda: whole, [crossmodal_table(found)], lambda: crossmodal_rows(found))
    warn([f"{lang}: {warning}" for lang, comparison in found.items() for warning in comparison.warnings])
    if any(comparison.failed for comparison in found.values()):
        raise typer.Exit(3)

"""`caplens compare`: systems side by side."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.data import samples_by_system
from caplens.errors import InputError
from caplens.report.views import differences_table, system_rows, systems_table

EXAMPLES = """
[bold]Examples[/bold]

caplens compare base.json large.json --references captions_val2014.json -m cider -m bleu4

caplens compare all_systems.jsonl -m cider -f latex
"""


@with_models
def compare(
    systems: Annotated[
        list[Path], typer.Argument(help="A file of captions for each system, or one whose rows name their 'system'.")
    ],
    references: options.References = None,
    metric: options.Metrics = None,
    lang: options.Lang = None,
    tokenizer: options.Tokenizer = None,
    df: options.DocumentFrequencies = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    correction: Annotated[str, typer.Option(help="For asking several questions at once: holm, bonferroni or bh.")] = "holm",
    quiet: options.Quiet = False,
    *,
    models: Models,
) -> None:
    """Compare captioning systems on the same images, with intervals and significance.

    Without --metric: clipscore with --images or a --model, else bleu4, rouge-l and cider. Captions are paired by id and
    language; what not all systems have is left out and counted. Where captions could not be scored, the exit status is 3.
    """
    form = choose_format(output, format, *systems, references, df)
    if not resamples:
        raise InputError("a comparison needs resamples; give at least 1 with --resamples.")
    names = options.listed(metric, ("clipscore",) if models.chosen else ("bleu4", "rouge-l", "cider"))
    with progress_bar(quiet):
        captions = samples_by_system(systems)
        comparison = api.compare(
            captions,
            names,
            references=references,
            images=models.images,
            model=models.open(names),
            prompt=models.prompt,
            lang=lang,
            tokenizer=tokenizer,
            df=df,
            resamples=resamples,
            seed=seed,
            correction=correction,
        )
    tables = [systems_table(comparison), differences_table(comparison)]
    files = {"captions": systems[0]} if len(systems) == 1 else {"systems": dict(zip(captions, systems, strict=True))}
    inputs = {**files, "references": references, "images": models.images, "lang": lang}
    deliver(output, form, comparison.to_dict, tables, lambda: system_rows(comparison), inputs)
    warn(comparison.warnings)
    if comparison.failed:
        raise typer.Exit(3)

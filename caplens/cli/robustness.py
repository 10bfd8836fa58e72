"""`caplens robustness`: how much metrics notice that captions were made worse."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.metrics import DEFAULT_METRICS
from caplens.report.views import robustness_rows, robustness_table

EXAMPLES = """
[bold]Examples[/bold]

caplens robustness captions.jsonl --images photos -m clipscore

caplens robustness captions.jsonl -r references.json -m cider,bleu4 --kind jumble --kind removal -o robustness.json
"""


@with_models
def robustness(
    captions: Annotated[Path, typer.Argument(help="Any file of good captions.")],
    metric: options.Metrics = None,
    kind: options.Kinds = None,
    references: options.References = None,
    lang: options.Lang = None,
    tokenizer: options.Tokenizer = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    *,
    models: Models,
) -> None:
    """Perturb captions, and see how far scores drop and how often the worse caption scores lower, by language.

    CSV, TSV and JSONL hold a row for each metric, language and perturbation, with confidence intervals by bootstrap over images.
    """
    form = choose_format(output, format, captions, references)
    names = options.listed(metric, ("clipscore",) if models.chosen else DEFAULT_METRICS)
    with progress_bar(quiet):
        results = api.robustness(
            captions,
            names,
            options.listed(kind, ("all",)),
            references=references,
            images=models.images,
            model=models.open(names),
            prompt=models.prompt,
            lang=lang,
            tokenizer=tokenizer,
            resamples=max(1, resamples),
            seed=seed,
        )
    deliver(output, form, results.to_dict, [robustness_table(results)], lambda: robustness_rows(results))
    warn(results.warnings)
    if results.failed:
        warn([f"{results.failed} captions could not be scored and were left out."])
        raise typer.Exit(3)

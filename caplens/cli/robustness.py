"""`caplens robustness`: how much metrics notice that captions were made worse."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import (
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    PerturbationProtocol,
    Perturbations,
    ReferencesOption,
    Resamples,
    Seed,
    listed,
)
from caplens.cli.output import warn, write_result
from caplens.stats import RESAMPLES

EXAMPLES = """
caplens robustness captions.jsonl --images photos -m clipscore
caplens robustness captions.jsonl -r references.json -m cider --perturbation jumble,removal -o robustness.json
caplens robustness captions.jsonl --images photos --protocol gentle
"""


def robustness(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    captions: Annotated[Path, typer.Argument(help="Any file of good captions.")],
    perturbation: Perturbations = None,
    protocol: PerturbationProtocol = "paper",
    references: ReferencesOption = None,
    lang: Lang = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Perturb captions, and measure how far scores drop and how often the worse caption scores lower, by language.

    CSV, TSV and JSONL hold one row for each metric, language and perturbation, with intervals by bootstrap over images.
    """
    form = output.checked(captions, references)
    result = api.robustness(
        captions,
        listed(metrics.metric),
        listed(perturbation) or ("all",),
        references=references,
        images=models.images,
        resamples=resamples,
        seed=seed,
        protocol=protocol,
        options=models.scoring(metrics, lang),
    )
    write_result(result, output.output, form)
    if result.failed:
        warn([f"{result.failed} captions could not be scored and were left out."])
        raise typer.Exit(3)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(robustness)

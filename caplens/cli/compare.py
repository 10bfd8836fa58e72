"""`caplens compare`: systems side by side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import (
    Correction,
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ReferencesOption,
    Resamples,
    Seed,
    listed,
)
from caplens.cli.output import write_result
from caplens.data import samples_by_system
from caplens.errors import InputError
from caplens.stats import CORRECTION, RESAMPLES

EXAMPLES = """
caplens compare base.json large.json --references captions_val2014.json -m cider -m bleu4
caplens compare all_systems.jsonl -m cider -f latex
caplens compare base.json large.json --references captions_val2014.json --human-baseline
"""


def compare(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    systems: Annotated[
        list[Path], typer.Argument(help="A file of captions for each system, or one whose rows name their 'system'.")
    ],
    references: ReferencesOption = None,
    human_baseline: Annotated[
        bool,
        typer.Option("--human-baseline", help="Add 'humans': of each image one reference as caption, the others as references."),
    ] = False,
    lang: Lang = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    correction: Correction = CORRECTION,
) -> None:
    """Compare captioning systems on the same images, with intervals and significance.

    Without --metric: clipscore with --images or a --model, else bleu4, rouge-l and cider. Captions are paired by id and
    language; those that not all systems have are left out and counted. Where captions could not be scored, the exit status is 3.
    """
    form = output.checked(*systems, references, metrics.df)
    if not resamples:
        raise InputError("a comparison needs resamples; give at least 1 with --resamples.")
    captions = samples_by_system(systems, single=human_baseline)
    comparison = api.compare(
        captions,
        listed(metrics.metric),
        references=references,
        images=models.images,
        resamples=resamples,
        seed=seed,
        correction=correction,
        human_baseline=human_baseline,
        options=models.scoring(metrics, lang),
    )
    files: Mapping[str, Path | Mapping[str, Path]] = (
        {"captions": systems[0]} if len(systems) == 1 else {"systems": dict(zip(captions, systems, strict=True))}
    )
    inputs = {**files, "references": references, "images": models.images, "lang": lang}
    write_result(comparison, output.output, form, inputs)
    if comparison.failed:
        raise typer.Exit(3)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(compare)

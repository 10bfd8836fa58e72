"""`caplens compare`: systems side by side."""

from collections.abc import Mapping, Sequence
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
from caplens.terminal import visible

EXAMPLES = """
caplens compare base.json large.json --references captions_val2014.json -m cider -m bleu4
caplens compare ours=large.json base=base.json -r captions_val2014.json --baseline base -o table.tex
caplens compare all_systems.jsonl -m cider -f latex --intervals
caplens compare base.json large.json --references captions_val2014.json --human-baseline
"""


def compare(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    systems: Annotated[
        list[str],
        typer.Argument(
            help="A file of captions for each system, named after it or NAME=FILE, or one file whose rows name their 'system'."
        ),
    ],
    references: ReferencesOption = None,
    human_baseline: Annotated[
        bool,
        typer.Option("--human-baseline", help="Add 'humans': of each image one reference as caption, the others as references."),
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(help="Test each system against this one. \\[default: every two are tested]")
    ] = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="In Markdown and LaTeX, print intervals too.")] = False,
    lang: Lang = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    correction: Correction = CORRECTION,
) -> None:
    """Compare captioning systems on the same images, with intervals and significance.

    Without --metric: clipscore with --images or a --model, else bleu4, rouge-l and cider. Captions are paired by id and
    language; those that not all systems have are left out and counted. p-values are of paired permutation tests over images,
    corrected for the comparisons of a metric. Markdown and LaTeX are tables for papers. Where captions could not be scored, the
    exit status is 3.
    """
    names, files = system_files(systems)
    form = output.checked(*files, references, metrics.df)
    if not resamples:
        raise InputError("a comparison needs resamples; give at least 1 with --resamples.")
    captions = samples_by_system(files, names, single=human_baseline)
    comparison = api.compare(
        captions,
        listed(metrics.metric),
        references=references,
        images=models.images,
        resamples=resamples,
        seed=seed,
        correction=correction,
        human_baseline=human_baseline,
        baseline=baseline,
        options=models.scoring(metrics, lang),
    )
    comparison.with_intervals = intervals
    named: Mapping[str, Path | Mapping[str, Path]] = (
        {"captions": files[0]} if len(files) == 1 else {"systems": dict(zip(captions, files, strict=True))}
    )
    inputs = {**named, "references": references, "images": models.images, "lang": lang}
    write_result(comparison, output.output, form, inputs, show=True)
    if comparison.failed:
        raise typer.Exit(3)


def system_files(arguments: Sequence[str]) -> tuple[list[str | None], list[Path]]:
    """The names that were given to systems, as in NAME=FILE, and their files."""
    names: list[str | None] = []
    files = []
    for argument in arguments:
        name, sign, file = argument.partition("=")
        # A file whose own name has a sign of equality is still a file.
        named = bool(sign and name and file) and not Path(argument).exists()
        names.append(visible(name) if named else None)
        files.append(Path(file if named else argument))
    return names, files


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(compare)

"""`caplens drift`: do the scores of a new run differ from those of an old one with other captions?"""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import OutputOptions, Resamples, Seed
from caplens.cli.output import write_result
from caplens.errors import InputError
from caplens.results.drift import ALL
from caplens.stats import RESAMPLES

EXAMPLES = """
caplens score monday.jsonl --images photos -o monday.json
caplens drift monday.json tuesday.json
caplens drift monday.json tuesday.json --fail-on-drop -o drift.json
"""


def drift(
    output: OutputOptions,
    old: Annotated[Path, typer.Argument(help="A result of 'caplens score … -o FILE.json'.")],
    new: Annotated[Path, typer.Argument(help="A later one, of other captions.")],
    fail_on_drop: Annotated[
        bool, typer.Option("--fail-on-drop", help="End with the exit status 4 where scores of a metric are worse for certain.")
    ] = False,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Compare the scores of two runs that share no captions: their means, distributions, and tests, by metric and language.

    For the same captions by two systems use 'caplens compare'. 'caplens report drift.json' draws both distributions.
    """
    form = output.checked(old, new)
    if old == new:
        raise InputError(f"{old}: the two runs are one file. Name another.")
    result = api.drift(old, new, resamples=resamples, seed=seed)
    write_result(result, output.output, form, {"old": old, "new": new}, show=True)
    if fail_on_drop and any(row.is_worse for row in result.drifts if row.lang == ALL):
        raise typer.Exit(4)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(drift)

"""The `caplens` command."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from caplens.cli import (
    augment,
    bench,
    compare,
    convert,
    crossmodal,
    demo,
    df,
    doctor,
    leakage,
    listing,
    perturb,
    report,
    robustness,
    score,
    store,
    train,
)
from caplens.cli.everywhere import everywhere
from caplens.cli.output import complain
from caplens.errors import CaplensError
from caplens.version import __version__

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=True)
app.command(epilog=demo.EXAMPLES)(everywhere(demo.demo))
app.command(epilog=score.EXAMPLES)(everywhere(score.score))
app.command(epilog=compare.EXAMPLES)(everywhere(compare.compare))
app.command(epilog=bench.EXAMPLES)(everywhere(bench.bench))
app.command(epilog=crossmodal.EXAMPLES)(everywhere(crossmodal.crossmodal))
app.command(epilog=perturb.EXAMPLES)(everywhere(perturb.perturb))
app.command(epilog=robustness.EXAMPLES)(everywhere(robustness.robustness))
app.command(epilog=report.EXAMPLES)(everywhere(report.report))
app.command(epilog=augment.EXAMPLES)(everywhere(augment.augment))
app.command(epilog=leakage.EXAMPLES)(everywhere(leakage.leakage))
app.command(epilog=convert.EXAMPLES)(everywhere(convert.convert))
app.command(epilog=df.EXAMPLES)(everywhere(df.df))
app.command("list", epilog=listing.EXAMPLES)(everywhere(listing.list_))
app.add_typer(train.app, name="train")
app.add_typer(store.app, name="store")
app.command(epilog=doctor.EXAMPLES)(everywhere(doctor.doctor))


def _open_missing_streams() -> None:
    """A program started with a standard stream closed has None in its place, which libraries do not expect."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _caplens(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """How good are image captions, in any language, and how far can the answer be trusted?"""


def main() -> None:
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its number instead of an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="caplens")
    except CaplensError as error:
        complain(error)
        sys.exit(2)

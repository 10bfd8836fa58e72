"""The `caplens` command."""

import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from caplens.version import __version__

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "demo": "demo",
    "score": "score",
    "compare": "compare",
    "bench": "bench",
    "agreement": "agreement",
    "crossmodal": "crossmodal",
    "perturb": "perturb",
    "robustness": "robustness",
    "report": "report",
    "augment": "augment",
    "leakage": "leakage",
    "convert": "convert",
    "count-df": "count_df",
    "list": "listing",
    "train": "train",
    "store": "store",
    "doctor": "doctor",
}
"""Command -> the module that registers it; in the order of the help."""


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        # Nothing else is loaded, so that asking for the version is quick.
        print(__version__)
        return
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its number instead of an error.
            stream.reconfigure(errors="backslashreplace")
    _run(sys.argv[1:])


def _run(arguments: list[str]) -> None:
    from caplens.cli.deprecated import modern_arguments
    from caplens.cli.output import error, messages_shown
    from caplens.errors import CaplensError, command_line_messages

    with messages_shown(quiet=True):
        arguments = modern_arguments(arguments)
    try:
        with command_line_messages():
            app = build_app(arguments[0] if arguments and arguments[0] in COMMANDS else None)
            app(arguments, prog_name="caplens")
    except CaplensError as problem:
        error(problem)
        sys.exit(2)


def build_app(only: str | None = None) -> "typer.Typer":
    """The command with all subcommands, or with the one that is going to be run: the others need not be loaded."""
    import typer

    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=True)
    for name in COMMANDS if only is None else [only]:
        import_module(f"caplens.cli.{COMMANDS[name]}").register(app)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(__version__)
            raise typer.Exit

    @app.callback()
    def caplens(
        version: bool = typer.Option(False, "--version", callback=show_version, is_eager=True, help="Show the version."),
    ) -> None:
        """How good are image captions, in any language, and how far can the answer be trusted?"""

    return app


def _open_missing_streams() -> None:
    """A program started with a standard stream closed has None in its place, which libraries do not expect."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115

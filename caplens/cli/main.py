"""The `caplens` command."""

import atexit
import io
import os
import signal
import sys
import threading
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from caplens.version import __version__

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "demo": "demo",
    "score": "score",
    "check": "check",
    "filter": "filter",
    "compare": "compare",
    "bench": "bench",
    "leaderboard": "leaderboard",
    "agreement": "agreement",
    "study": "study",
    "app": "app",
    "select-images": "select_images",
    "crossmodal": "crossmodal",
    "perturb": "perturb",
    "robustness": "robustness",
    "drift": "drift",
    "calibrate": "calibrate",
    "report": "report",
    "plan": "plan",
    "translate": "translate",
    "caption": "caption",
    "study-run": "study_run",
    "augment": "augment",
    "leakage": "leakage",
    "convert": "convert",
    "count-df": "count_df",
    "mid": "mid",
    "list": "listing",
    "train": "train",
    "store": "store",
    "doctor": "doctor",
}
"""Command -> the module that registers it; in the order of the help."""
_INTERRUPTED = 130
"""The exit status of a program that was interrupted, as shells have it."""
_interrupted = False
_signals = 0
"""How often somebody asked."""
_ended = False
"""Whether the command has its status; an interrupt no longer changes it then."""
_MOMENT = 0.01
"""Seconds."""


def main() -> None:
    """Run the command that the arguments name; a person who presses Ctrl-C reads one line, and a program gets status 130."""
    global _ended
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, _stop)
            sys.unraisablehook = _stop_again
            # Once the work is done, what is left is Python's own end, in which a signal would find no handler.
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        _main(sys.argv[1:])
    except BaseException as problem:
        _ended = True
        # Interrupted in the middle of an import, libraries raise errors of their own.
        if not _interrupted and not isinstance(problem, OSError | MemoryError):
            raise
        # Nothing large may be imported here: what was interrupted may have been the import of it.
        from caplens.progress import kept
        from caplens.terminal import say

        why = f"interrupted. {' '.join(kept) or 'Nothing was written.'}" if _interrupted else _system_error(problem)
        say(f"caplens: {why}")
        sys.exit(_INTERRUPTED if _interrupted else 2)


def _system_error(problem: BaseException) -> str:
    """Of the system, not of caplens: a name that is too long, a folder that may not be entered, a disk or memory that is full."""
    if isinstance(problem, OSError):
        return f"{problem.filename or 'a file or stream'}: {problem.strerror or problem}."
    return "there is not enough memory for this. Use a smaller batch, fewer workers, or a part of the data."


def _stop(*_: object) -> None:
    """End the program in good order; at once if asked again."""
    global _interrupted, _signals
    _signals += 1
    if _signals > 1:
        os._exit(_INTERRUPTED)
    if not _ended:
        _interrupted = True
        sys.exit(_INTERRUPTED)


def _stop_again(dropped: "sys.UnraisableHookArgs") -> None:
    """A signal that comes while Python cleans up, where it drops exceptions, comes again a moment later."""
    global _interrupted, _signals
    if _interrupted and dropped.exc_type is SystemExit:
        _interrupted, _signals = False, 0
        threading.Timer(_MOMENT, _interrupt_main).start()
    else:
        sys.__unraisablehook__(dropped)


def _interrupt_main() -> None:
    """Send the signal to the main thread, so that it wakes up where it waits."""
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def _main(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        # Nothing else is loaded, so that asking for the version is quick.
        print(__version__, flush=True)
        return
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its number instead of an error.
            stream.reconfigure(errors="backslashreplace")
    # Of images that are large or damaged; caplens says itself what is wrong with those that it cannot use.
    warnings.filterwarnings("ignore", module="PIL")
    _run(arguments)


def _run(arguments: list[str]) -> None:
    global _ended
    from caplens.cli.deprecated import modern_arguments
    from caplens.cli.output import error, messages_shown
    from caplens.errors import CaplensError, command_line_messages

    with messages_shown(quiet=True):
        arguments = modern_arguments(arguments)
    try:
        with command_line_messages():
            _check_working_folder()
            app = build_app(arguments[0] if arguments and arguments[0] in COMMANDS else None)
            app(arguments, prog_name="caplens")
    except CaplensError as problem:
        # Whoever interrupts now reads what was wrong, and nothing else.
        _ended = True
        error(problem)
        sys.exit(2)


def _check_working_folder() -> None:
    from caplens.errors import InputError

    try:
        Path.cwd()
    except OSError:
        raise InputError("the current folder no longer exists. Change to another folder.") from None


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

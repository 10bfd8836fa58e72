"""`--json` and `--quiet`, which every command has."""

import inspect
from collections.abc import Callable
from typing import Any

from caplens.cli import options
from caplens.cli.output import Format, print_json, remarks_hidden
from caplens.errors import InputError


def everywhere(command: Callable[..., dict[str, Any] | None]) -> Callable[..., None]:
    """The command with both options.

    With --json, a command that has a `format` writes that; any other gives back what it did, which is printed.
    """
    own = inspect.signature(command).parameters
    added = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", options.Quiet), ("json", options.AsJson))
        if name not in own
    }

    def run(**given: Any) -> None:
        as_json = given.pop("json")
        quiet = (given["quiet"] if "quiet" in own else given.pop("quiet")) or as_json
        if "quiet" in own:
            given["quiet"] = quiet
        if as_json and "format" in own:
            if given["format"] not in (None, Format.json):
                raise InputError(f"--json and --format {given['format']} contradict each other; choose one.")
            if "output" in own and own["output"].default is None and given["output"] is not None:
                raise InputError(f"--json prints; leave it off to write {given['output']}, or leave --output off.")
            given["format"] = Format.json
        with remarks_hidden(quiet):
            done = command(**given)
        if as_json and done is not None:
            print_json(done)

    return options.in_place_of(command, run, [*own.values(), *added.values()])

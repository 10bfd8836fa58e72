"""How functions become commands: one decorator, which adds the options that every command has and expands groups of options.

A parameter whose type is a dataclass marked with `option_group` stands for the options that are its fields.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from caplens.cli.output import Format, messages_shown, print_json
from caplens.cli.progress_bar import progress_bar
from caplens.data.formats.formulas import formulas_allowed
from caplens.data.replacing import inputs_kept
from caplens.errors import InputError

G = TypeVar("G")
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results, warnings and errors: no progress bar, no messages.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to standard output.")]
_GLOBAL = {"quiet": Quiet, "json": AsJson}


class Outcome(NamedTuple):
    """What a command did, and its exit status."""

    content: dict[str, Any]
    status: int


CommandFunction = Callable[..., dict[str, Any] | Outcome | None]


def option_group(group: type[G]) -> type[G]:
    """Mark a dataclass as a group of options: its fields are annotated as parameters of a command are."""
    group.__option_group__ = True  # type: ignore[attr-defined]
    return group


def command(app: typer.Typer, name: str | None = None, examples: str = "") -> Callable[[CommandFunction], CommandFunction]:
    """Register a function as a command of `app`.

    With `--json`, a command that has a format writes JSON; any other returns what it did, which is printed.
    """

    def register(function: CommandFunction) -> CommandFunction:
        parameters, groups = _expanded(function)
        defaults = {parameter.name: parameter.default for parameter in parameters}

        def run(**values: Any) -> None:
            quiet, as_json = values.pop("quiet"), values.pop("json")
            if as_json and "format" in values:
                _use_json(values, prints=defaults.get("output") is None)
            arguments = {name: value for name, value in values.items() if name not in groups.members}
            arguments |= groups.build(values)
            allowed = formulas_allowed(bool(values.get("allow_formulas")))
            with messages_shown(quiet or as_json), progress_bar(quiet or as_json), allowed, inputs_kept():
                done = function(**arguments)
            outcome = done if isinstance(done, Outcome) else Outcome(done or {}, 0)
            if as_json and done is not None:
                print_json(outcome.content)
            if outcome.status:
                raise typer.Exit(outcome.status)

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        # typer reads the options of a command off its signature.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, epilog=_epilog(examples))(run)
        return function

    return register


class _Groups:
    """The groups of a command: parameter -> dataclass."""

    def __init__(self, groups: dict[str, type]) -> None:
        self._groups = groups
        self.members = {field.name for group in groups.values() for field in fields(group)}

    def build(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: group(**{field.name: values[field.name] for field in fields(group)}) for name, group in self._groups.items()
        }


def _expanded(function: CommandFunction) -> tuple[list[inspect.Parameter], _Groups]:
    """The options of a command, with those of its groups in the groups' places, and the global ones."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints[parameter.name]
        if is_dataclass(annotation) and hasattr(annotation, "__option_group__"):
            assert isinstance(annotation, type)
            groups[parameter.name] = annotation
            parameters += _members(annotation)
        else:
            parameters.append(_option(parameter.name, annotation, parameter.default))
    parameters += [_option(name, annotation, False) for name, annotation in _GLOBAL.items()]
    return parameters, _Groups(groups)


def _members(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _option(field.name, hints[field.name], getattr(group, field.name, inspect.Parameter.empty)) for field in fields(group)
    ]


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _use_json(values: dict[str, Any], *, prints: bool) -> None:
    """`prints`: whether the command writes to standard output unless an output is named."""
    if values["format"] not in (None, Format.json):
        raise InputError(f"--json and --format {values['format']} contradict each other; choose one.")
    if prints and values.get("output") is not None:
        raise InputError(f"--json prints; leave it off to write {values['output']}, or leave --output off.")
    values["format"] = Format.json


def _epilog(examples: str) -> str | None:
    """Examples below the help, one per paragraph."""
    lines = [line.strip() for line in examples.strip().splitlines() if line.strip()]
    if not lines:
        return None
    return "\n\n".join([f"[bold]Example{'s' if len(lines) > 1 else ''}[/bold]", *lines])

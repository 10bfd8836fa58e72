"""The errors that caplens raises for people: each message says what is wrong, where, and what to do.

A message that advises on an option names it with `option`, which spells it for whoever reads: `images=FOLDER` in Python,
`--images FOLDER` on the command line.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class CaplensError(Exception):
    """Something the user can fix. The command prints the message and exits with status 2."""


class InputError(CaplensError):
    """A file or value that was passed in cannot be used."""


class MissingExtraError(CaplensError):
    """A feature needs an optional package or program that is not installed."""

    def __init__(self, feature: str, needs: str, install: str) -> None:
        super().__init__(f"{feature} needs {needs}, which is not installed. Install it with: {install}")


def reason(error: BaseException) -> str:
    """The message of another library's error, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines and not lines[0].endswith(":") else " ".join(lines[:2]) or type(error).__name__


_COMMAND_LINE_NAMES = {"metrics": "metric", "keep_store": "no-store", "above_chance": "below-chance", "executor": "engine"}
"""Options that the command line calls differently."""
_FLAGS = ("keep_store", "lossy", "offline", "trust_remote_code", "pool_languages", "above_chance")
"""Options that take no value on the command line."""
_on_command_line = False


def option(name: str, value: str = "") -> str:
    """The option called `name` in Python, as the reader of a message writes it: `images=FOLDER` or `--images FOLDER`."""
    if not _on_command_line:
        return f"{name}={value}" if value else repr(name)
    spelled = "--" + _COMMAND_LINE_NAMES.get(name, name).replace("_", "-")
    return f"{spelled} {value}" if value and name not in _FLAGS else spelled


@contextmanager
def command_line_messages() -> Iterator[None]:
    """Spell options in messages as the command line has them while the block runs."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before

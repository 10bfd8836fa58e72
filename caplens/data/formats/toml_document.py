"""A TOML file with settings, with limits on its lines: the memory of a parser grows with the square of what is nested."""

import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

from caplens.data.files import Source
from caplens.errors import InputError

LONGEST_LINE, _MOST_LINES = 1000, 1000


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of the file; `what` says in errors what it should be, such as "recipe"."""
    with Source(path) as source:
        lines = [line for _, line in islice(source.lines(), _MOST_LINES + 1)]
    if len(lines) > _MOST_LINES or any(len(line) > LONGEST_LINE for line in lines):
        raise InputError(f"{path}: this is no {what}: a line is longer than {LONGEST_LINE:,} characters, or there are too many.")
    try:
        return tomllib.loads("".join(lines))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this {what} cannot be read ({error}).") from None

"""Finding and reading the files of data sets."""

from collections.abc import Sequence
from pathlib import Path

from caplens.data.files import Place, Source
from caplens.errors import InputError

_PACKED = ("", ".gz", ".xz", ".bz2")


def find_file(folder: Path, names: Sequence[str], what: str, where: str) -> Path:
    """The first of `names` that is there, packed or not; else an error that says what is missing and where people get it."""
    for name in names:
        for suffix in _PACKED:
            if (folder / f"{name}{suffix}").is_file():
                return folder / f"{name}{suffix}"
    raise InputError(f"{folder}: {what} is missing. Put {' or '.join(names)} (packed or not) there. {where}")


def read_fields(path: Path, count: int, *, tabs_in_last: bool = False) -> list[tuple[Place, list[str]]]:
    """The tab-separated fields of each line of a file whose lines all have `count` of them, with their places.

    With `tabs_in_last` the last field is all that is left of the line: some captions hold a tab.
    """
    rows = []
    with Source(path) as source:
        for line_number, line in source.lines():
            fields = line.rstrip("\r\n").split("\t", count - 1 if tabs_in_last else -1)
            if fields == [""]:
                continue
            place = Place(path, line_number)
            if len(fields) != count:
                raise InputError(f"{place}: {len(fields)} tab-separated fields where {count} are expected.")
            rows.append((place, fields))
    return rows

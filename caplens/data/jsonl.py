"""JSON Lines: one sample a line."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from caplens.data.files import Place, Source
from caplens.data.rows import Row, row_from_sample
from caplens.data.sample import Sample
from caplens.errors import InputError


def read_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        place = Place(source.path, number)
        try:
            row = json.loads(line, strict=False)
        except json.JSONDecodeError as error:
            raise broken_json(place, error) from None
        except (RecursionError, ValueError) as error:
            raise unreadable_json(place, error) from None
        if not isinstance(row, dict):
            raise InputError(f'{place}: each line must be an object such as {{"id": "1", "caption": "a dog"}}.')
        check_characters(line, row, place)
        yield place, row


def write(samples: Iterable[Sample], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for sample in samples:
            try:
                out.write(json.dumps(row_from_sample(sample), ensure_ascii=False) + "\n")
            except TypeError as error:
                raise InputError(f"sample {sample.id!r}: something in it cannot be written as JSON ({error}).") from None


def unreadable_json(place: Place, error: Exception) -> InputError:
    """JSON that is right but too much: nested too deeply, or with a number of thousands of digits."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return InputError(f"{place}: the JSON cannot be read ({why}).")


def check_characters(text: str, value: Any, place: Place) -> None:
    """JSON can escape half of a surrogate pair, which is no character and cannot be written anywhere."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise InputError(f"{place}: {half} is half of a surrogate pair and no character. Take it out.") from None


def broken_json(place: Place, error: json.JSONDecodeError) -> InputError:
    where = place._replace(number=(place.number or 1) + error.lineno - 1)
    return InputError(f"{where}: broken JSON at character {error.colno} ({error.msg}). Mend that line.")

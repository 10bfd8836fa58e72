"""Whole JSON documents, read strictly: no key twice, no half characters, and the place of whatever is broken."""

import json
from pathlib import Path
from typing import Any

from caplens.data.files import Place, Source
from caplens.errors import InputError


def read_document(source: Source) -> Any:
    """A whole JSON document."""
    text = source.text()
    try:
        document = json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, source.path), strict=False)
        check_characters(text, document, Place(source.path))
        return document
    except json.JSONDecodeError as error:
        raise broken_json(Place(source.path, 1), error) from None
    except (RecursionError, ValueError) as error:
        raise unreadable_json(Place(source.path), error) from None


def _without_repeats(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{path}: the key {repeated!r} appears twice in one object. Give each caption its own id.")
    return document


def unreadable_json(place: Place, error: Exception) -> InputError:
    """JSON that is valid but too much: nested too deeply, or with a number of thousands of digits."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return InputError(f"{place}: the JSON cannot be read ({why}).")


def check_characters(text: str, value: Any, place: Place) -> None:
    """JSON can escape half of a surrogate pair, which is not a character and cannot be written anywhere."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise InputError(f"{place}: {half} is half of a surrogate pair and not a character. Remove it.") from None


def broken_json(place: Place, error: json.JSONDecodeError) -> InputError:
    where = place._replace(number=(place.number or 1) + error.lineno - 1)
    return InputError(f"{where}: broken JSON at character {error.colno} ({error.msg}). Fix that line.")

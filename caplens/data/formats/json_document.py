"""JSON, read strictly and written safely: no key twice, no half characters, no NaN, and the place of whatever is broken."""

import json
import math
import re
from datetime import date, time
from decimal import Decimal
from typing import Any

from caplens.data.files import Place, Source, max_line_bytes, too_long
from caplens.errors import InputError


def read_document(source: Source) -> Any:
    """A whole JSON document."""
    return parse_json(source.text(), Place(source.path))


def parse_json(text: str, place: Place) -> Any:
    """The value of a JSON text that begins at `place`; NaN, which is not JSON, is null."""
    check_memory(text, place)
    try:
        value = json.loads(
            text, object_pairs_hook=lambda pairs: _without_repeats(pairs, place), parse_constant=_CONSTANTS.get, strict=False
        )
    except json.JSONDecodeError as error:
        where = place._replace(number=(place.number or 1) + error.lineno - 1) if place.unit == "line" else place
        raise InputError(f"{where}: broken JSON at character {error.colno} ({error.msg}). Fix that line.") from None
    except (RecursionError, ValueError) as error:
        # Valid, but too much: nested too deeply, or with a number of thousands of digits.
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{place}: the JSON cannot be read ({why}).") from None
    _check_characters(text, value, place)
    return value


def check_memory(text: str, place: Place) -> None:
    """An empty list is two characters of JSON, and fifty bytes or more of memory."""
    if len(text) <= _SMALL:
        return
    limit = _VALUES_PER_LINE * max_line_bytes()
    containers, values, keys = text.count("[") + text.count("{"), text.count(","), text.count(":")
    if _CONTAINER_BYTES * containers + _VALUE_BYTES * values + _KEY_BYTES * keys > limit:
        raise too_long(place, "what the JSON holds", limit)


_SMALL = 1 << 20
_CONTAINER_BYTES, _VALUE_BYTES, _KEY_BYTES = 100, 50, 200
_VALUES_PER_LINE = 24
"""How many times larger than a line the values of a JSON text may be in memory."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONSTANTS = {"NaN": None, "Infinity": math.inf, "-Infinity": -math.inf}
"""What Python's JSON knows beyond JSON."""


def _without_repeats(pairs: list[tuple[str, Any]], place: Place) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"{place}: the key {repeated!r} appears twice in one object. Give each caption its own id.")
    return document


def _check_characters(text: str, value: Any, place: Place) -> None:
    """JSON can escape half of a surrogate pair, which is not a character and cannot be written anywhere."""
    remaining = [value] if "\\ud" in text or "\\uD" in text else []
    while remaining:
        part = remaining.pop()
        if isinstance(part, dict):
            remaining += [*part, *part.values()]
        elif isinstance(part, list):
            remaining += part
        elif isinstance(part, str) and (half := _SURROGATE.search(part)):
            raise InputError(f"{place}: {half[0]!a} is half of a surrogate pair and not a character. Remove it.")


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON that every program reads: NaN becomes null, and dates and exact numbers, which Parquet has, become text and numbers.

    Raises an `InputError` for what has no place in JSON, such as bytes and infinity.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_value, indent=indent)
    except ValueError:
        value = _without_nan(value)
    except (TypeError, RecursionError) as error:
        raise InputError(f"this cannot be written as JSON ({error}).") from None
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_value, indent=indent)
    except (TypeError, ValueError) as error:
        raise InputError(f"this cannot be written as JSON ({error}).") from None


def is_json(value: Any) -> bool:
    """Whether `to_json` can write a value."""
    if value is None or isinstance(value, str | int | float):
        return value is None or not isinstance(value, float) or abs(value) != float("inf")
    try:
        to_json(value)
    except InputError:
        return False
    return True


def _json_value(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def finite_number(value: Any) -> float | None:
    """A number as a float; None if it is something else, is not finite, or has more digits than a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

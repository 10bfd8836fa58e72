"""What the values of recipes may be: types of dataclass fields with a range or a choice, checked before anything is read."""

import math
from dataclasses import fields
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from caplens.errors import InputError


class Range(NamedTuple):
    """The lowest and the highest value, both allowed."""

    low: float
    high: float

    def problem(self, value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return f"must be between {self.low:g} and {self.high:g}"
        return None


class Choice(NamedTuple):
    """The values that a text may have."""

    values: tuple[str, ...]

    def problem(self, value: Any) -> str | None:
        return None if value in self.values else f"must be one of: {', '.join(self.values)}"


Count = Annotated[int, Range(1, 10_000_000)]
CountOrNone = Annotated[int, Range(0, 10_000_000)]
Width = Annotated[int, Range(1, 65_536)]
Layers = Annotated[int, Range(1, 1000)]
PixelSide = Annotated[int, Range(8, 4096)]
Share = Annotated[float, Range(0, 1)]
PartialShare = Annotated[float, Range(0, 0.99)]
Weight = Annotated[float, Range(0, 1e6)]
LearningRate = Annotated[float, Range(1e-12, 10)]
WeightDecay = Annotated[float, Range(0, 10)]
Average = Annotated[float, Range(0, 0.999_999)]
Temperature = Annotated[float, Range(1e-4, 100)]
TemperatureOrNone = Annotated[float, Range(0, 100)]
Cosine = Annotated[float, Range(-2, 2)]


def check_values(section: object, name: str) -> None:
    """Raise an error if a field of a section has a value that its type does not allow."""
    hints = get_type_hints(type(section), include_extras=True)
    for field in fields(section):  # type: ignore[arg-type]
        value = getattr(section, field.name)
        problem = _problem(value, hints[field.name])
        if problem is not None:
            raise InputError(f"{name}.{field.name} {problem}, not {value!r}.")


def _problem(value: Any, hint: Any) -> str | None:
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if kind is int and (isinstance(value, bool) or not isinstance(value, int)):
        return "must be a whole number"
    if kind is float and isinstance(value, float) and not math.isfinite(value):
        return "must be a number"
    rules = getattr(hint, "__metadata__", ())
    return next((problem for rule in rules if (problem := rule.problem(value)) is not None), None)

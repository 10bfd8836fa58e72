"""`StudySettings`: what a study asks of people, and how; with defaults for each task, or from a TOML file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from caplens.data.formats.toml_document import read_toml
from caplens.errors import InputError

QUALITY = "quality"
"""The criterion of studies that have one."""
LARGEST_CHOICE = 3
"""Of side by side: 7 points from -3 to 3."""


class StudyTask(StrEnum):
    """What raters do."""

    rate = "rate"
    sidebyside = "sidebyside"
    write = "write"


class Label(NamedTuple):
    """A point of a scale: its value, its name, and what it means."""

    value: float
    name: str
    meaning: str = ""


SCALE = (
    Label(4, "EXCELLENT", "excellent"),
    Label(3, "GOOD", "good"),
    Label(2, "MEDIUM", "medium"),
    Label(1, "BAD", "bad"),
)
"""That of Crossmodal-3600, best first. The meanings are keys of the catalogue, which has them in every language of the pages."""
_RANGES: dict[str, tuple[float, float]] = {
    "replication": (1, 100),
    "lease_minutes": (1, 24 * 60),
    "batch": (1, 200),
    "gold_share": (0, 0.5),
    "repeat_share": (0, 0.5),
    "pilot": (0, 1_000_000),
    "shortest": (1, 1000),
    "longest": (1, 5000),
    "cost_per_answer": (0, 1_000_000),
    "seed": (0, 2**31 - 1),
}
_SMALLEST_SCALE, _LARGEST_SCALE = 2, 11
_LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class StudySettings:
    """What a study asks.

    Parameters
    ----------
    task
        rate, sidebyside or write.
    title
        Shown to raters and in results.
    scale
        The points of `rate`, best first.
    criteria
        What is rated on that scale; one row of buttons each.
    no_information
        Whether raters may say that there is not enough information.
    reasons
        Whether raters are asked why, in a text that may stay empty.
    replication
        How many people judge each item.
    batch
        Images of `write` that are rated before their captions are written.
    lease_minutes
        How long an item that somebody opened is kept for them.
    gold_share, repeat_share
        The shares of items with a known answer, and of items that a rater sees again.
    pilot
        How many items of each language are shown before the owner opens the study; 0 for none.
    guidelines
        Language -> text; without one the rubric of the task is shown.
    shortest, longest
        The fewest and most words (characters in languages without spaces) of a caption that is written.
    cost_per_answer, currency
        For the estimate on the dashboard.
    seed
        Of the order of items.
    """

    task: StudyTask = StudyTask.rate
    title: str = "Captions of images"
    scale: tuple[Label, ...] = SCALE
    criteria: tuple[str, ...] = (QUALITY,)
    no_information: bool = True
    reasons: bool = False
    replication: int = 3
    batch: int = 15
    lease_minutes: float = 30
    gold_share: float = 0.1
    repeat_share: float = 0.0
    pilot: int = 0
    guidelines: Mapping[str, str] = field(default_factory=dict)
    shortest: int = 3
    longest: int = 60
    cost_per_answer: float = 0.0
    currency: str = "EUR"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            is_integer = isinstance(getattr(type(self), name), int)
            if isinstance(value, bool) or not isinstance(value, int if is_integer else int | float) or not low <= value <= high:
                kind = "a whole number" if is_integer else "a number"
                raise InputError(f"{name} is {kind} from {low:g} to {high:g}, not {value!r}.")
        if self.shortest > self.longest:
            raise InputError(f"shortest ({self.shortest}) is more than longest ({self.longest}).")
        if not self.title.strip() or len(self.title) > 200:
            raise InputError("the title of a study has 1 to 200 characters.")
        if not self.criteria or len(set(self.criteria)) < len(self.criteria) or not all(map(str.strip, self.criteria)):
            raise InputError("criteria are names, each once.")
        _check_scale(self.scale)
        if any(len(text) > _LONGEST_TEXT for text in self.guidelines.values()):
            raise InputError(f"guidelines have at most {_LONGEST_TEXT:,} characters.")

    @property
    def values(self) -> dict[str, float]:
        """Label -> value, best first."""
        return {label.name: label.value for label in self.scale}

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON and TOML have them."""
        return {**asdict(self), "scale": [label._asdict() for label in self.scale], "criteria": list(self.criteria)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Settings from the keys of a TOML file; those that are not there have their defaults."""
        names = [entry.name for entry in fields(cls)]
        unknown = sorted(set(content) - set(names))
        if unknown:
            raise InputError(f"there is no setting {', '.join(map(repr, unknown))}; choose from: {', '.join(names)}.")
        values = dict(content)
        for name in ("title", "currency"):
            if name in values and not isinstance(values[name], str):
                raise InputError(f"{name} is text, not {values[name]!r}.")
        for name in ("no_information", "reasons"):
            if name in values and not isinstance(values[name], bool):
                raise InputError(f"{name} is true or false, not {values[name]!r}.")
        if "task" in values:
            if values["task"] not in list(StudyTask):
                raise InputError(f"task is {', '.join(StudyTask)}, not {values['task']!r}.")
            values["task"] = StudyTask(values["task"])
        if "criteria" in values:
            values["criteria"] = tuple(_texts(values["criteria"], "criteria"))
        if "scale" in values:
            values["scale"] = _scale(values["scale"])
        if "guidelines" in values:
            values["guidelines"] = _guidelines(values["guidelines"])
        return cls(**values)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Settings from a TOML file."""
        content = read_toml(path, "study")
        try:
            return cls.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _check_scale(scale: tuple[Label, ...]) -> None:
    values, names = [label.value for label in scale], [label.name for label in scale]
    if not _SMALLEST_SCALE <= len(scale) <= _LARGEST_SCALE:
        raise InputError(f"a scale has {_SMALLEST_SCALE} to {_LARGEST_SCALE} points, not {len(scale)}.")
    if (
        values != sorted(set(values), reverse=True)
        or len({f"{value:g}" for value in values}) < len(values)
        or len(set(names)) < len(names)
        or not all(map(str.strip, names))
    ):
        raise InputError("the points of a scale have different names and values, the best first.")


def _scale(entries: object) -> tuple[Label, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError('scale is a list of points, each with value and name: [[scale]] value = 4, name = "EXCELLENT".')
    labels = []
    for entry in entries:
        value, name, meaning = entry.get("value"), entry.get("name"), entry.get("meaning", "")
        finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
        if not finite or not isinstance(name, str) or not isinstance(meaning, str) or set(entry) - set(Label._fields):
            raise InputError(f"a point of the scale has a value (a number), a name, and perhaps a meaning, not {entry!r}.")
        labels.append(Label(value, name, meaning))
    return tuple(labels)


def _texts(values: object, name: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name} is a list of texts, not {values!r}.")
    return values


def _guidelines(value: object) -> dict[str, str]:
    if isinstance(value, str):
        return {"en": value}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InputError('guidelines are a text, or texts by language: [guidelines] de = "…".')
    return value

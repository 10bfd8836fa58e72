"""Recipes: what a training run does, as frozen dataclasses read from TOML; the shipped ones, those of users, and single changes."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from caplens.errors import InputError

R = TypeVar("R", bound="Recipe")
RawSection = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """A recipe is a dataclass whose fields are its sections, which are dataclasses too. Values are those of the shipped TOML."""

    name: ClassVar[str]
    package: ClassVar[str] = "caplens.training.recipes"
    """Where its TOML lies."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """What every recipe that tunes a model has in its section `train`."""

    parts: str
    """all, text, projections or lora."""
    steps: int
    rate: float
    decay: float
    warmup: float
    average: float
    at_once: int
    """Captions or photos that are encoded together, to save memory; 0: all."""


@dataclass(frozen=True, kw_only=True)
class ScoreTrainSettings(TrainSettings):
    """Of recipes that train a score of captions and photos."""

    temperature: float
    """Of the contrastive loss; 0: the model's own."""
    prompt: str
    """Before each caption."""
    keep: float
    """The share of the old weights in the new ones."""


@dataclass(frozen=True)
class ValidationSettings:
    every: int
    patience: int
    """Steps without a better value before training ends; 0: never."""


@dataclass(frozen=True)
class HeldOutSettings(ValidationSettings):
    share: float
    """Of the data, kept for validation."""


@dataclass(frozen=True)
class DataSettings:
    half: bool
    """Train in bfloat16."""


@dataclass(frozen=True)
class TuningRecipe(Recipe):
    """A recipe that tunes a model; subclasses have their own losses."""

    train: TrainSettings
    validation: ValidationSettings
    data: DataSettings


def read_recipe(kind: type[R], path: Path | None = None, changes: Sequence[str] = (), *, small: bool = False) -> R:
    """The shipped recipe, its small form, or that of another file; `changes` are like `distil.steps=2000`."""
    shipped = tomllib.loads(_shipped_text(kind, kind.name))
    try:
        if path is not None:
            text = path.read_text(encoding="utf-8")
        else:
            text = _shipped_text(kind, f"{kind.name}_small" if small else kind.name)
        sections: dict[str, dict[str, Any]] = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: this recipe cannot be read ({error}).") from None
    _check_keys(sections, shipped, path, f"{kind.name}.toml")
    for change in changes:
        section, key, value = _parsed_change(change, shipped)
        sections[section][key] = value
    hints = get_type_hints(kind)
    return kind(**{field.name: hints[field.name](**sections[field.name]) for field in fields(kind)})


def _shipped_text(kind: type[Recipe], name: str) -> str:
    return files(kind.package).joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _check_keys(sections: dict[str, Any], shipped: dict[str, Any], path: Path | None, example: str) -> None:
    """The sections and keys must be those of the shipped recipe, with values of the same types."""
    present, expected = _value_types(sections), _value_types(shipped)
    wrong = next((name for name in [*present, *expected] if present.get(name) != expected.get(name)), None)
    if wrong is not None:
        why = "is not known" if wrong not in expected else "is missing" if wrong not in present else "has a value of another type"
        raise InputError(
            f"{path}: {wrong} {why}. A recipe has the sections and keys of {example}, with values of the same types."
        )


def _parsed_change(change: str, shipped: dict[str, RawSection]) -> tuple[str, str, Any]:
    """`section.key=value` -> section, key and value."""
    name, equals, text = change.partition("=")
    section, _, key = name.partition(".")
    if not equals or key not in shipped.get(section, {}):
        first = next(iter(shipped))
        example = f"{first}.{next(iter(shipped[first]))}"
        raise InputError(f"--set {change}: write SECTION.KEY=VALUE with a key of the recipe, such as {example}=….")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise InputError(f"--set {change}: {text!r} is not a TOML value.") from None
    if _type(value) != _type(shipped[section][key]):
        raise InputError(f"--set {change}: a value like {shipped[section][key]!r} is expected.")
    return section, key, value


def _value_types(sections: Mapping[str, Any]) -> dict[str, type]:
    """SECTION.KEY -> the type of its value."""
    types: dict[str, type] = {}
    for section, keys in sections.items():
        if isinstance(keys, dict):
            types |= {f"{section}.{key}": _type(value) for key, value in keys.items()}
        else:
            types[f"{section}."] = type(keys)
    return types


def _type(value: Any) -> type:
    """Whole numbers may stand for any number."""
    return float if type(value) is int else type(value)

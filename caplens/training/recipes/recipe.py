"""Recipes: the settings of a training run, as frozen dataclasses that are read from TOML."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from caplens.data.formats.toml_document import LONGEST_LINE, read_toml
from caplens.errors import InputError
from caplens.training.recipes.values import (
    Average,
    Choice,
    Count,
    CountOrNone,
    LearningRate,
    PartialShare,
    Share,
    TemperatureOrNone,
    Weight,
    WeightDecay,
    check_values,
)

R = TypeVar("R", bound="Recipe")
RawSection = Mapping[str, Any]
_MOST_SHOWN = 80


@dataclass(frozen=True)
class Recipe:
    """A dataclass with one field per section of its TOML file. Sections are dataclasses too; the defaults are in the file."""

    name: ClassVar[str]
    package: ClassVar[str] = "caplens.training.recipes"
    """The package that holds the TOML file."""

    def __post_init__(self) -> None:
        for section in fields(self):
            check_values(getattr(self, section.name), section.name)

    def to_dict(self) -> dict[str, Any]:
        """Section -> key -> value."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The section `train` of all recipes that tune a model."""

    parts: Annotated[str, Choice(("all", "text", "projections", "lora"))]
    """What is trained: all, text, projections or lora."""
    steps: Count
    rate: LearningRate
    """Learning rate."""
    decay: WeightDecay
    """Weight decay."""
    warmup: Share
    """Share of the steps with a rising learning rate."""
    schedule: Annotated[str, Choice(("cosine", "constant"))]
    """The learning rate after the warmup: falling as a cosine, or constant."""
    clip: Weight
    """The largest norm of the gradients; 0: any."""
    average: Average
    """Decay of the moving average of the weights."""
    at_once: CountOrNone
    """Captions or photos that are encoded together, to save memory; 0: all."""


@dataclass(frozen=True, kw_only=True)
class ScoreTrainSettings(TrainSettings):
    """The section `train` of recipes that compare captions with photos."""

    temperature: TemperatureOrNone
    """Temperature of the contrastive loss; 0: the model's own."""
    prompt: str
    """Text before each caption."""
    keep: Share
    """Share of the old weights in the final ones."""


@dataclass(frozen=True)
class ValidationSettings:
    every: Count
    """Steps between two measurements."""
    patience: CountOrNone
    """Steps without a better value before training stops; 0: never."""


@dataclass(frozen=True)
class HeldOutSettings(ValidationSettings):
    share: PartialShare
    """Share of the data that is held out for validation."""


@dataclass(frozen=True)
class DataSettings:
    half: bool
    """Train in bfloat16."""


@dataclass(frozen=True)
class TuningRecipe(Recipe):
    """A recipe that tunes a model; subclasses add their sections."""

    train: TrainSettings
    validation: ValidationSettings
    data: DataSettings


PRESETS = ("caplens", "paper")
"""The recipe of caplens, and that of the paper."""


def read_recipe(kind: type[R], path: Path | None = None, changes: Sequence[str] = (), *, variant: str = "") -> R:
    """Read a recipe.

    Parameters
    ----------
    kind
        The recipe class, such as `PacsRecipe`.
    path
        A TOML file with sections and keys of the recipe's own, whose values those have that it leaves out; by default the
        recipe's own.
    changes
        Values to change: `SECTION.KEY=VALUE` with a value in TOML, such as `train.steps=200`. Of two for one key the last counts.
    variant
        Another version of the recipe in the package: `paper`, or `small` for `train mini`.

    Raises
    ------
    InputError
        If the file cannot be read, or a key or a value does not fit.
    """
    shipped = tomllib.loads(_shipped_text(kind, kind.name))
    name = f"{kind.name}_{variant}" if variant else kind.name
    given: dict[str, Any] = tomllib.loads(_shipped_text(kind, name)) if path is None else read_toml(path, "recipe")
    _check_sections(given, shipped, path, f"{kind.name}.toml")
    sections: dict[str, dict[str, Any]] = {name: {**section, **given.get(name, {})} for name, section in shipped.items()}
    for change in changes:
        section, key, value = _parse_change(change, shipped)
        sections[section][key] = value
    names = {change.partition("=")[0] for change in changes}
    if "train.steps" in names and "train.epochs" not in names and "epochs" in sections.get("train", {}):
        # Who sets the steps means them, whatever a preset says about epochs.
        sections["train"]["epochs"] = 0
    hints = get_type_hints(kind)
    return kind(**{field.name: hints[field.name](**sections[field.name]) for field in fields(kind)})


def _shipped_text(kind: type[Recipe], name: str) -> str:
    return files(kind.package).joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _check_sections(sections: dict[str, Any], shipped: dict[str, Any], path: Path | None, example: str) -> None:
    """The sections and keys must be of the shipped recipe, with values of the same types."""
    types, expected = _value_types(sections), _value_types(shipped)
    name = next((name for name, kind in types.items() if kind != expected.get(name)), None)
    if name is not None:
        problem = "is unknown" if name not in expected else "has a value of another type"
        raise InputError(f"{path}: {name} {problem}. A recipe has sections and keys of {example}, with values of the same types.")


def _parse_change(change: str, shipped: dict[str, RawSection]) -> tuple[str, str, Any]:
    """`SECTION.KEY=VALUE` -> section, key and value."""
    name, equals, text = change.partition("=")
    section, _, key = name.partition(".")
    if not equals or key not in shipped.get(section, {}):
        first = next(iter(shipped))
        example = f"{first}.{next(iter(shipped[first]))}"
        raise InputError(f"{_short(change)}: write SECTION.KEY=VALUE with a key of the recipe, such as {example}=….")
    try:
        if "\n" in text or len(text) > LONGEST_LINE:
            raise ValueError("more than a value")
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        raise InputError(f"{_short(change)}: this is not a TOML value.") from None
    if _value_type(value) != _value_type(shipped[section][key]):
        raise InputError(f"{_short(change)}: a value like {shipped[section][key]!r} is expected.")
    return section, key, value


def _short(change: str) -> str:
    return repr(change if len(change) <= _MOST_SHOWN else change[:_MOST_SHOWN] + "…")


def _value_types(sections: Mapping[str, Any]) -> dict[str, type]:
    """The types of sections (SECTION) and of their values (SECTION.KEY), by name."""
    types: dict[str, type] = {}
    for section, keys in sections.items():
        types[section] = type(keys)
        if isinstance(keys, dict):
            types |= {f"{section}.{key}": _value_type(value) for key, value in keys.items()}
    return types


def _value_type(value: Any) -> type:
    """The type of a value. Integers are accepted as floats."""
    return float if type(value) is int else type(value)

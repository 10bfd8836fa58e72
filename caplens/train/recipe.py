"""Recipes of training, in TOML: the shipped ones beside this file, those of users, and changes for one run."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from caplens.errors import InputError

Config = dict[str, dict[str, Any]]


def read_config(path: Path | None = None, changes: Sequence[str] = (), *, recipe: str = "mini", small: bool = False) -> Config:
    """The recipe beside this file, its small form, or that of another file; `changes` are like `distil.steps=2000`."""
    shipped = f"{recipe}.toml"
    known: Config = tomllib.loads(_shipped(shipped))
    try:
        text = _shipped(f"{recipe}_small.toml" if small else shipped) if path is None else path.read_text(encoding="utf-8")
        config: Config = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: this recipe cannot be read ({error}).") from None
    mine, wanted = _kinds(config), _kinds(known)
    odd = next((name for name in [*mine, *wanted] if mine.get(name) != wanted.get(name)), None)
    if odd is not None:
        wrong = "is not known" if odd not in wanted else "is missing" if odd not in mine else "has a value of another kind"
        raise InputError(
            f"{path}: {odd} {wrong}. A recipe has the sections and keys of {shipped}, with values of the same kinds."
        )
    for change in changes:
        name, equals, value = change.partition("=")
        section, _, key = name.partition(".")
        if not equals or key not in known.get(section, {}):
            first = next(iter(known))
            example = f"{first}.{next(iter(known[first]))}"
            raise InputError(f"--set {change}: give SECTION.KEY=VALUE with a key of the recipe, such as {example}=….")
        try:
            given = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            raise InputError(f"--set {change}: {value!r} is no value of TOML.") from None
        if _types({key: given}) != _types({key: known[section][key]}):
            raise InputError(f"--set {change}: a value like {known[section][key]!r} is expected.")
        config[section][key] = given
    return config


def _kinds(config: Config) -> dict[str, Any]:
    """SECTION.KEY -> the kind of its value."""
    return {
        f"{section}.{key}": kind for section, keys in config.items() for key, kind in (_types(keys) or {"": type(keys)}).items()
    }


def _types(section: Any) -> Any:
    """Keys and the kinds of their values; whole numbers may stand for any."""
    if not isinstance(section, dict):
        return None
    return {key: float if type(value) is int else type(value) for key, value in section.items()}


def _shipped(name: str) -> str:
    return files("caplens.train").joinpath(name).read_text(encoding="utf-8")

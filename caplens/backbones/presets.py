"""Recommended models, with their size, languages and licence: `presets.tsv` beside this file."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Preset(NamedTuple):
    """A recommended model, as a row of `presets.tsv`.

    Attributes
    ----------
    name
        The model's name for `load_backbone`.
    parameters
        Millions of parameters, both towers together.
    languages
        The languages that it was trained on.
    tokens
        The most tokens that a text may have.
    licence
        The licence of the weights.
    download
        The size of the download in gigabytes.
    source
        Where the model is described.
    """

    name: str
    parameters: str
    languages: str
    tokens: str
    licence: str
    download: str
    source: str


@cache
def _read_presets() -> tuple[Preset, ...]:
    with files("caplens.backbones").joinpath("presets.tsv").open(encoding="utf-8") as stream:
        return tuple(Preset(**row) for row in csv.DictReader(stream, delimiter="\t"))


PRESETS = _read_presets()


def preset_of(name: str) -> Preset | None:
    """The preset that a model's name refers to, with or without options."""
    return next((preset for preset in PRESETS if name == preset.name or name.startswith(f"{preset.name},")), None)

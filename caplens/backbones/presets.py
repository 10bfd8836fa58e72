"""Models that are known to be good, with what one wants to know before downloading them: `presets.tsv` beside this file."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Preset(NamedTuple):
    name: str
    parameters: str
    """Millions, both towers."""
    languages: str
    tokens: str
    """The longest text."""
    licence: str
    download: str
    """Gigabytes."""
    source: str


@cache
def _presets() -> tuple[Preset, ...]:
    with files("caplens.backbones").joinpath("presets.tsv").open(encoding="utf-8") as stream:
        return tuple(Preset(**row) for row in csv.DictReader(stream, delimiter="\t"))


PRESETS = _presets()


def preset_of(name: str) -> Preset | None:
    """The preset of this name, whatever options follow it."""
    return next((preset for preset in PRESETS if name == preset.name or name.startswith(f"{preset.name},")), None)

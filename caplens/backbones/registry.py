"""Models by name."""

import re
from importlib import import_module
from pathlib import Path

from caplens.backbones.base import Backbone
from caplens.backbones.hub import folder_of, read_json, recipe_of
from caplens.backbones.mini import DEFAULT
from caplens.backbones.names import ModelName
from caplens.backbones.network import DTYPES, Setting
from caplens.backbones.presets import preset_of
from caplens.errors import InputError

FAMILIES: dict[str, tuple[str, ...]] = {
    "hf": ("revision", "weights"),
    "openclip": ("revision", "weights"),
    "mclip": ("revision", "image"),
    "st": ("revision", "image"),
}
"""Family -> the options that its names may have; each family is the file of its name. (caplens-mini has no family.)"""
TRAINED = "caplens.json"
"""In the folder of a model that caplens trained: which family's layout it has. (One like caplens-mini has none.)"""
_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?|mps")
_TWO_MODELS = ("mclip", "st")


def is_mini(name: str) -> bool:
    """Whether this is the model inside the package, or the folder of one like it."""
    return name == DEFAULT or (_is_folder(name) and not (Path(name).expanduser() / TRAINED).is_file())


def _is_folder(name: str) -> bool:
    return bool(name) and ":" not in name and folder_of(name) is not None


def _parse(name: str) -> tuple[ModelName, str | None]:
    """The name's parts, and the recipe that the model was tuned with, where that is not in its own settings."""
    if is_mini(name):
        return ModelName("mini", name, {}, name), None
    if not _is_folder(name):
        return ModelName.parse(name, FAMILIES), None
    place = Path(name).expanduser() / TRAINED
    about = read_json(place)
    family, image = str(about.get("family")), about.get("image")
    if family not in FAMILIES:
        raise InputError(f"{place}: its family {family!r} is not known; choose from: {', '.join(FAMILIES)}.")
    inside = place.parent / str(image)
    options = {} if image is None else {"image": str(inside) if inside.is_dir() else str(image)}
    return ModelName(family, str(place.parent), options, name), recipe_of(about)


def load_backbone(
    name: str, *, device: str = "auto", dtype: str = "fp32", offline: bool = False, trust_remote_code: bool = False
) -> Backbone:
    """The model called `name`: its files are looked up now, its weights loaded when first used.

    `caplens-mini` is inside the package; a folder that `caplens train` wrote is named by its path.

    `device` is auto, cpu, cuda, cuda:1, mps; `dtype` fp32, bf16 or fp16. With `offline` nothing is downloaded. Code that comes
    with a model is run only with `trust_remote_code`.
    """
    parsed, tuned = _parse(name)
    if not _DEVICE.fullmatch(device):
        raise InputError(f"unknown device {device!r}; choose from: auto, cpu, cuda, cuda:1 and so on, mps.")
    if dtype not in DTYPES:
        raise InputError(f"unknown number format {dtype!r}; choose from: {', '.join(DTYPES)}.")
    setting = Setting(device, dtype, offline, trust_remote_code)
    load = import_module(f"caplens.backbones.{parsed.family}").load
    backbone: Backbone
    if parsed.family in _TWO_MODELS:
        backbone = load(
            parsed,
            setting,
            lambda other: load_backbone(other, device=device, dtype=dtype, offline=offline, trust_remote_code=trust_remote_code),
        )
    else:
        backbone = load(parsed, setting)
    backbone.tuned = backbone.tuned or tuned
    preset = preset_of(name)
    if preset is not None:
        backbone.licence, backbone.languages = preset.licence, preset.languages
    return backbone

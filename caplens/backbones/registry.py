"""Models by name."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TypedDict, Unpack

from caplens.backbones.base import Backbone
from caplens.backbones.hub import folder_of, read_json, recipe_of
from caplens.backbones.load_options import BackboneSpec, LoadOptions
from caplens.backbones.mini import DEFAULT
from caplens.backbones.names import ModelName
from caplens.backbones.presets import preset_of
from caplens.errors import InputError
from caplens.plugins import find_plugins, load_plugin

FAMILIES: dict[str, tuple[str, ...]] = {
    "hf": ("revision", "weights"),
    "openclip": ("revision", "weights"),
    "mclip": ("revision", "image"),
    "st": ("revision", "image"),
}
"""Family -> the options that its names may have; each family is the file of its name. (caplens-mini has no family.)"""
TRAINED = "caplens.json"
"""In the folder of a model that caplens trained: which family's layout it has. (One like caplens-mini has none.)"""
_TWO_MODELS = ("mclip", "st")
_ANY = ("*",)
PLUGINS = "caplens.backbones"
"""The entry points of other packages: family -> function `load(name: ModelName, options: LoadOptions) -> Backbone`."""


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
        return ModelName.parse(name, families()), None
    place = Path(name).expanduser() / TRAINED
    about = read_json(place)
    family, image = str(about.get("family")), about.get("image")
    if family not in FAMILIES:
        raise InputError(f"{place}: its family {family!r} is not known; choose from: {', '.join(FAMILIES)}.")
    inside = place.parent / str(image)
    options = {} if image is None else {"image": str(inside) if inside.is_dir() else str(image)}
    return ModelName(family, str(place.parent), options, name), recipe_of(about)


class LoadKeywords(TypedDict, total=False):
    """The fields of `LoadOptions`, as keywords."""

    device: str
    dtype: str
    offline: bool
    trust_remote_code: bool


def load_backbone(name: str, options: LoadOptions | None = None, **keywords: Unpack[LoadKeywords]) -> Backbone:
    """The model called `name`. Its files are looked up now, its weights loaded when first used.

    Parameters
    ----------
    name
        `caplens-mini`, the folder of a model that `caplens train` wrote, or `FAMILY:NAME`, as in
        `hf:openai/clip-vit-base-patch32`.
    options
        How it is loaded and run.
    **keywords
        Single fields of `LoadOptions`: device, dtype, offline, trust_remote_code.

    Raises
    ------
    InputError
        If there is no such model, or its files are incomplete.

    Examples
    --------
    >>> load_backbone("caplens-mini").encode_texts(["a dog"]).shape
    (1, 256)
    """
    options = replace(options or LoadOptions(), **keywords)
    parsed, tuned = _parse(name)
    load = family_loader(parsed.family)
    backbone: Backbone
    if parsed.family in _TWO_MODELS:
        backbone = load(parsed, options, lambda other: load_backbone(other, options))
    else:
        backbone = load(parsed, options)
    backbone.spec = BackboneSpec(name, options)
    backbone.tuned = backbone.tuned or tuned
    preset = preset_of(name)
    if preset is not None:
        backbone.licence, backbone.languages = preset.licence, preset.languages
    return backbone


def family_loader(family: str) -> Callable[..., Backbone]:
    """The function that loads a model of a family: `load(name, options)`."""
    if family in FAMILIES or family == "mini":
        loader: Callable[..., Backbone] = import_module(f"caplens.backbones.{family}").load
        return loader
    plugin: Callable[..., Backbone] = load_plugin(PLUGINS, family)
    return plugin


def families() -> dict[str, tuple[str, ...]]:
    """Every family that there is, with the options that its names may have; those of other packages may have any."""
    return {**dict.fromkeys(find_plugins(PLUGINS), _ANY), **FAMILIES}

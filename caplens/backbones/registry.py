"""Loads models by name."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TypedDict, Unpack

from caplens.backbones.base import Backbone
from caplens.backbones.hub import folder_of, read_json, recipe_of
from caplens.backbones.load_options import BackboneSpec, LoadOptions
from caplens.backbones.manifest import check_manifest
from caplens.backbones.mini import DEFAULT, VERSIONS, mini_folder
from caplens.backbones.mini_use import NAME as MINI_USE
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
"""Family -> the options that its names may have. Each family is the module of that name; caplens-mini has no family."""
TRAINED = "caplens.json"
"""The file that names the family of a trained model, in the model's folder. A model like caplens-mini has none."""
_PAIRED_FAMILIES = ("mclip", "st")
"""Families whose images are encoded by another model."""
_BUILT_IN = ("mini", "mini_use")
"""Modules of the models inside the package."""
_ANY_OPTION = ("*",)
PLUGINS = "caplens.backbones"
"""The entry points of plugins: family -> function `load(name: ModelName, options: LoadOptions) -> Backbone`."""


def is_mini(name: str) -> bool:
    """Whether this is a model inside the package, or the folder of one like it."""
    return name in VERSIONS or (_is_folder(name) and not (Path(name).expanduser() / TRAINED).is_file())


def _is_folder(name: str) -> bool:
    return bool(name) and ":" not in name and folder_of(name) is not None


def _parse_name(name: str) -> tuple[ModelName, str | None]:
    """The parts of a name, and the recipe that the model was fine-tuned with if its folder has a `caplens.json`."""
    if is_mini(name):
        return ModelName("mini", name, {}, name), None
    if name == MINI_USE:
        return ModelName("mini_use", DEFAULT, {}, name), None
    if not _is_folder(name):
        return ModelName.parse(name, families()), None
    path = Path(name).expanduser() / TRAINED
    settings = read_json(path)
    family, image = str(settings.get("family")), settings.get("image")
    if family not in FAMILIES:
        raise InputError(f"{path}: unknown family {family!r}; choose from: {', '.join(FAMILIES)}.")
    subfolder = path.parent / str(image)
    options = {} if image is None else {"image": str(subfolder) if subfolder.is_dir() else str(image)}
    return ModelName(family, str(path.parent), options, name), recipe_of(settings)


class LoadKeywords(TypedDict, total=False):
    """The fields of `LoadOptions`, as keywords."""

    device: str
    dtype: str
    offline: bool
    trust_remote_code: bool


def load_backbone(name: str, options: LoadOptions | None = None, **keywords: Unpack[LoadKeywords]) -> Backbone:
    """Load a model by name. Its files are looked up now, its weights are loaded on first use.

    Parameters
    ----------
    name
        `caplens-mini`, `caplens-mini-use`, the folder of a model that `caplens train` saved, or `FAMILY:NAME`, as in
        `hf:openai/clip-vit-base-patch32`.
    options
        How it is loaded and run.
    **keywords
        Single fields of `LoadOptions`, which override those of `options`: device, dtype, offline, trust_remote_code.

    Returns
    -------
    Backbone
        The model.

    Raises
    ------
    InputError
        If there is no such model, or its files are incomplete.

    Examples
    --------
    >>> load_backbone("caplens-mini").encode_texts(["a dog"]).shape
    (1, 512)
    """
    options = replace(options or LoadOptions(), **keywords)
    parsed, tuned = _parse_name(name)
    folder = mini_folder(parsed.model) if parsed.model in VERSIONS else folder_of(parsed.model)
    if folder is not None:
        check_manifest(folder)
    load = family_loader(parsed.family)
    backbone: Backbone
    if parsed.family in _PAIRED_FAMILIES:
        try:
            backbone = load(parsed, options, lambda image_model: load_backbone(image_model, options))
        except RecursionError:
            raise InputError(f"{name}: its image model leads back to itself. Name another with ',image=MODEL'.") from None
    else:
        backbone = load(parsed, options)
    backbone.spec = BackboneSpec(name, options)
    backbone.tuned = backbone.tuned or tuned
    preset = preset_of(name)
    if preset is not None:
        backbone.licence, backbone.languages = preset.licence, preset.languages
    return backbone


def family_loader(family: str) -> Callable[..., Backbone]:
    """The function `load(name, options)` of a family."""
    if family in FAMILIES or family in _BUILT_IN:
        loader: Callable[..., Backbone] = import_module(f"caplens.backbones.{family}").load
        return loader
    plugin: Callable[..., Backbone] = load_plugin(PLUGINS, family)
    return plugin


def families() -> dict[str, tuple[str, ...]]:
    """All families, plugins included, with the options that their names may have; those of plugins may have any."""
    return {**dict.fromkeys(find_plugins(PLUGINS), _ANY_OPTION), **FAMILIES}

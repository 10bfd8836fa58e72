"""Captioners by name: caplens-mini-captioner and folders like it, `hf:ORG/NAME`, `endpoint:URL,model=NAME`, `vit-mt5:FOLDER`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL.Image import Image

from caplens.backbones.hub import folder_of, read_json
from caplens.backbones.load_options import LoadOptions
from caplens.captioners import mini
from caplens.captioners.base import Captioner, ImageCaptions, SearchOptions, language_not_written
from caplens.data.languages import base_language
from caplens.data.writing import SUFFIXES
from caplens.errors import InputError, option
from caplens.plugins import find_plugins, load_plugin
from caplens.translation.base import Hypothesis

PLUGINS = "caplens.captioners"
"""The entry points of other packages: name -> function `load(device: str)`, which returns a `Captioner`, or a function from
images to captions in English."""
FAMILIES = {
    mini.DEFAULT: "the captioner inside the package, in twelve languages; or the folder of one that caplens trained",
    "hf": "any image-to-text model of transformers: BLIP, BLIP-2, GIT, LLaVA, Qwen-VL, PaliGemma, Florence-2 (hf:ORG/NAME)",
    "vit-mt5": "an image tower and mT5, as caplens trains them (vit-mt5:FOLDER)",
    "endpoint": "a model behind an OpenAI-compatible server (endpoint:http://localhost:8000/v1,model=NAME)",
}


class PluginCaptioner:
    """A function from images to captions in English, as a captioner."""

    def __init__(self, name: str, describe: Callable[[Sequence[Image]], Sequence[str]]) -> None:
        self.name, self._describe = name, describe
        point = find_plugins(PLUGINS).get(name)
        version = point.dist.version if point is not None and point.dist is not None else ""
        self.fingerprint, self.licence = f"plugin {name} {version}", "that of its package"

    def check_language(self, lang: str) -> None:
        if base_language(lang) != "en":
            raise language_not_written(self.name, lang, ["en"])

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        return [ImageCaptions.of([Hypothesis(str(text))]) for text in self._describe(images)]


def list_captioners() -> dict[str, str]:
    """Name -> where it comes from."""
    plugins = {
        name: f"the package {point.dist.name}" if point.dist else point.value for name, point in find_plugins(PLUGINS).items()
    }
    return {**FAMILIES, **plugins}


def open_captioner(name: str, search: SearchOptions | None = None, options: LoadOptions | None = None) -> Captioner:
    """The captioner of a name.

    Parameters
    ----------
    name
        `caplens-mini-captioner`, the folder of a captioner that caplens trained, `FAMILY:NAME` with a family of `FAMILIES`, or
        that of another package's captioner. A name without a family is that of a transformers model.
    search
        How captions are searched.
    options
        How a model is loaded.

    Returns
    -------
    Captioner
        Which is opened when it is first used.

    Raises
    ------
    InputError
        If there is no such captioner.
    """
    search, options = search or SearchOptions(), options or LoadOptions()
    if name in find_plugins(PLUGINS):
        plugin: Any = load_plugin(PLUGINS, name)(options.device)
        captioner: Captioner = plugin if hasattr(plugin, "caption") else PluginCaptioner(name, plugin)
        return captioner
    if not name or Path(name).suffix.lower() in SUFFIXES:
        raise InputError(f"{name!r} is not a captioner; see 'caplens list captioners'.")
    return _open_family(name, search, options)


def _open_family(name: str, search: SearchOptions, options: LoadOptions) -> Captioner:
    """The captioner of a family, or from a folder."""
    family, colon, rest = name.partition(":")
    kind = "mini" if name == mini.DEFAULT else _trained_kind(name)
    if kind == "mini":
        return mini.load(name, search)
    if kind == "vit-mt5" or (colon and family == "vit-mt5"):
        from caplens.captioners.vit_mt5 import VitMt5Captioner

        return VitMt5Captioner(name.removeprefix("vit-mt5:"), search, options)
    if colon and family == "endpoint":
        return _endpoint(name, rest, search, options)
    from caplens.captioners.hf import HuggingFaceCaptioner

    return HuggingFaceCaptioner(rest if colon and family == "hf" else name, search, options)


def _trained_kind(name: str) -> str | None:
    """The kind of a captioner that caplens trained, if the name is that of its folder."""
    folder = folder_of(name)
    if folder is None or not (folder / mini.SETTINGS).is_file():
        return None
    return "vit-mt5" if read_json(folder / mini.SETTINGS).get("captioner") == "vit-mt5" else "mini"


def _endpoint(name: str, rest: str, search: SearchOptions, options: LoadOptions) -> Captioner:
    from caplens.captioners.endpoint import EndpointCaptioner

    if options.offline:
        raise InputError(f"{name} sends images to a server; leave {option('offline')} out to allow that.")
    url, comma, model = rest.partition(",model=")
    if not comma or not model:
        raise InputError(f"{name}: name the model of the endpoint, as in endpoint:{url},model=NAME.")
    return EndpointCaptioner(url, model, search)


def load_captioner(name: str, *, device: str = "auto") -> Callable[[Sequence[Image]], list[str]]:
    """A function from images to captions in English, by the captioner of this name."""
    captioner = open_captioner(name, options=LoadOptions(device))
    if hasattr(captioner, "load"):
        # Now, so that whoever misspelled a name learns it before anything is done.
        captioner.load()

    def describe(images: Sequence[Image]) -> list[str]:
        captions = captioner.caption(images, "en", 1)
        return [result.hypotheses[0].text if result.hypotheses else "" for result in captions]

    return describe

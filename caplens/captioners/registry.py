"""Captioners by name: models of transformers, and captioners of other packages."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from PIL.Image import Image

from caplens.plugins import find_plugins, load_plugin

PLUGINS = "caplens.captioners"
"""The entry points of other packages: name -> function `load(device: str) -> Captioner`."""


class Captioner(Protocol):
    """Describes images."""

    def __call__(self, images: Sequence[Image]) -> list[str]:
        """A caption for each image."""
        ...


def list_captioners() -> dict[str, str]:
    """Name -> where it comes from."""
    plugins = {
        name: f"the package {point.dist.name}" if point.dist else point.value for name, point in find_plugins(PLUGINS).items()
    }
    return {"ORG/NAME": "any image-to-text model of transformers on the hub, or the path of its folder", **plugins}


def load_captioner(name: str, *, device: str = "auto") -> Captioner:
    """The captioner of this name: one of another package, a transformers model on the hub, or the folder of one."""
    if name in find_plugins(PLUGINS):
        plugin: Any = load_plugin(PLUGINS, name)
        captioner: Captioner = plugin(device)
        return captioner
    # transformers is imported only where one of its models is used.
    hf: Captioner = import_module("caplens.captioners.hf").load(name, device=device)
    return hf

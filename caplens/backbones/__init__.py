"""Encoders of images and texts: one protocol, one file per family, and the registry that loads one by its name."""

from caplens.backbones.base import Backbone, Tokens
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.presets import PRESETS, Preset
from caplens.backbones.registry import FAMILIES, load_backbone

__all__ = ["FAMILIES", "PRESETS", "Backbone", "LoadOptions", "ModelName", "Preset", "Tokens", "load_backbone"]

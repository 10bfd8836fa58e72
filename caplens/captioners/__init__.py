"""Captioners: images in, captions out."""

from caplens.captioners.registry import Captioner, load_captioner

__all__ = ["Captioner", "load_captioner"]

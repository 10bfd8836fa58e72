"""Captioners: images in, captions out."""

from caplens.captioners.registry import Captioner, list_captioners, load_captioner

__all__ = ["Captioner", "list_captioners", "load_captioner"]

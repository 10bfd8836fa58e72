"""Captioners: images in, captions out."""

from caplens.captioners.base import Captioner, ImageCaptions, SearchOptions
from caplens.captioners.registry import list_captioners, load_captioner, open_captioner

__all__ = ["Captioner", "ImageCaptions", "SearchOptions", "list_captioners", "load_captioner", "open_captioner"]

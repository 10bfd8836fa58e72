"""What a caption is about: an image or a video, by path, in bytes, or as an array in memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL.Image import Image, fromarray

from caplens.errors import InputError

ADDRESS = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)
"""How an address begins. Images are not downloaded."""

_CHANNELS = 3


@dataclass(frozen=True, slots=True)
class MissingImage:
    """Stands in for an image or video that is not there, or may not be opened."""

    reason: str
    unusable: bool = True
    """Whether the caption names one that cannot be used, rather than none."""


@dataclass(frozen=True, slots=True)
class Frames:
    """A video as images in the order of time."""

    images: "tuple[ImageSource, ...]"


ImageSource = str | PathLike[str] | bytes | Image | MissingImage


@runtime_checkable
class ImageArray(Protocol):
    """An array or tensor of three channels, first or last: integers from 0 to 255, or fractions from 0 to 1."""

    @property
    def shape(self) -> tuple[int, ...]: ...


VideoSource = str | PathLike[str] | bytes | Frames | ImageArray | MissingImage
"""A file or folder of frames, or frames in memory: `Frames`, or an array of four dimensions."""


def media_name(source: ImageSource | VideoSource, what: str = "image") -> str:
    """How messages name an image or video: by its path, if it has one."""
    return str(source) if isinstance(source, str | PathLike) else f"the {what}"


def image_from_array(array: "ImageArray") -> Image:
    """An array or tensor with three channels as an image."""
    pixels = np.asarray(_on_cpu(array))
    if pixels.ndim != _CHANNELS or _CHANNELS not in (pixels.shape[0], pixels.shape[2]):
        raise InputError(f"an image has height, width and three channels, not the shape {tuple(pixels.shape)}.")
    if pixels.shape[2] != _CHANNELS:
        pixels = pixels.transpose(1, 2, 0)
    if not pixels.size or pixels.dtype.kind not in "biuf":
        raise InputError(
            f"an image of the shape {tuple(pixels.shape)} and the type {pixels.dtype} has no pixels that can be seen."
        )
    if pixels.dtype.kind == "f":
        if not (pixels.min() >= 0 and pixels.max() <= 1):
            raise InputError("an image of fractions must lie between 0 and 1; undo the normalisation that a model needs.")
        pixels = (pixels * 255).round()
    return fromarray(pixels.clip(0, 255).astype(np.uint8))


def _on_cpu(array: Any) -> Any:
    """A tensor of PyTorch without its gradient, in a format that numpy knows."""
    if not hasattr(array, "detach"):
        return array
    return (array.float() if array.is_floating_point() else array).detach().cpu()


def as_image(source: "ImageSource | ImageArray | None") -> ImageSource | None:
    """An image as samples have it: arrays and tensors become images in memory."""
    if source is None or isinstance(source, str | PathLike | bytes | Image | MissingImage):
        return source
    if isinstance(source, ImageArray):
        return image_from_array(source)
    raise InputError(f"an image is a path, bytes, a PIL image, an array or a tensor, not {type(source).__name__}.")


def as_images(sources: "Sequence[ImageSource | ImageArray | None] | ImageSource | ImageArray") -> list[ImageSource | None]:
    """Several images; a lone one, or a lone array of three dimensions, is one image, and an array of four a batch."""
    if isinstance(sources, str | PathLike | bytes | Image | MissingImage):
        return [sources]
    if isinstance(sources, ImageArray):
        batch: Any = [sources] if len(sources.shape) == _CHANNELS else sources
        return [image_from_array(image) for image in batch]
    return [as_image(source) for source in sources]

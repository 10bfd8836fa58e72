"""How an image becomes pixels for a model: resized and cropped exactly as the model's own library does it.

The result stays in bytes. Scaling to 0…1 and normalising happen on the model's device, which is faster and moves a quarter of
the data.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.Image import Resampling

from caplens.errors import InputError

Pixels = NDArray[np.uint8]
"""Height, width, RGB."""

OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)

_LONGEST = 200
"""How many times its width an image may be high; resizing its shorter side would take gigabytes."""
_RESAMPLING = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}


@dataclass(frozen=True)
class ImageTransform:
    """`fit` says how the image gets to `size` (height, width):

    - `crop`: the shorter side is resized to `resize`, and the middle of the longer one kept;
    - `squash`: both sides are resized, whatever the shape;
    - `pad`: the longer side is resized, and the rest filled with `fill`;
    - `patches`: the shape is kept, with at most `most_patches` patches of `patch` pixels (SigLIP 2 NaFlex).
    """

    size: tuple[int, int]
    fit: Literal["crop", "squash", "pad", "patches"] = "crop"
    resize: int = 0
    resample: int = Resampling.BICUBIC
    mean: tuple[float, ...] = OPENAI_MEAN
    std: tuple[float, ...] = OPENAI_STD
    fill: int = 0
    round_half: bool = False
    """Where the middle lies when the rest is odd: torchvision rounds, transformers cuts off."""
    patch: int = 16
    most_patches: int = 256

    def __call__(self, image: Image.Image) -> Pixels:
        match self.fit:
            case "crop":
                made = self._crop(image)
            case "squash":
                made = self._resized(image, self.size)
            case "pad":
                made = self._pad(image)
            case "patches":
                made = self._resized(image, patched_size(image.height, image.width, self.patch, self.most_patches))
        return np.asarray(made)

    @property
    def most_bytes(self) -> int:
        """The size of the largest result."""
        pixels = self.most_patches * self.patch**2 if self.fit == "patches" else self.size[0] * self.size[1]
        return 3 * pixels

    def _resized(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        height, width = size
        return image if image.size == (width, height) else image.resize((width, height), self.resample)

    def _crop(self, image: Image.Image) -> Image.Image:
        width, height = image.size
        short, long = min(width, height), max(width, height)
        if long > _LONGEST * short:
            raise ValueError(f"it is {width} x {height} pixels, which is too narrow")
        stretched = int(self.resize * long / short)
        made = self._resized(image, (self.resize, stretched) if width > height else (stretched, self.resize))
        top, left = ((side - kept) / 2 for side, kept in zip((made.height, made.width), self.size, strict=True))
        top, left = (round(top), round(left)) if self.round_half else (int(top // 1), int(left // 1))
        return made.crop((left, top, left + self.size[1], top + self.size[0]))

    def _pad(self, image: Image.Image) -> Image.Image:
        height, width = self.size
        ratio = max(image.height / height, image.width / width)
        made = self._resized(image, (max(1, round(image.height / ratio)), max(1, round(image.width / ratio))))
        canvas = Image.new("RGB", (width, height), (self.fill,) * 3)
        canvas.paste(made, ((width - made.width) // 2, (height - made.height) // 2))
        return canvas

    @classmethod
    def from_transformers(cls, config: dict[str, Any], place: str) -> "ImageTransform":
        """From `preprocessor_config.json`."""
        kind = str(config.get("image_processor_type", config.get("feature_extractor_type", "")))
        siglip = kind.startswith("Siglip")
        half = (0.5, 0.5, 0.5)
        common: dict[str, Any] = {
            "resample": config.get("resample", Resampling.BICUBIC),
            "mean": tuple(config.get("image_mean") or (half if siglip else OPENAI_MEAN)),
            "std": tuple(config.get("image_std") or (half if siglip else OPENAI_STD)),
        }
        if kind.startswith("Siglip2"):
            common["resample"] = config.get("resample", Resampling.BILINEAR)
            patch, most = config.get("patch_size", 16), config.get("max_num_patches", 256)
            side = int(most**0.5) * patch
            return cls((side, side), "patches", patch=patch, most_patches=most, **common)
        if len(common["mean"]) != 3 or len(common["std"]) != 3 or 0 in common["std"]:
            raise InputError(f"{place}: the mean and deviation of colours are not understood. Get the model again.")
        size = config.get("size", 224)
        crop = config.get("crop_size", size)
        try:
            if isinstance(size, dict) and "height" in size:
                made = cls((size["height"], size["width"]), "squash", **common)
            else:
                short: int = size["shortest_edge"] if isinstance(size, dict) else size
                tall, wide = (crop.get(side, short) if isinstance(crop, dict) else crop for side in ("height", "width"))
                made = cls((tall, wide), "crop", resize=short, **common)
            if min(made.size) < 1 or (made.fit == "crop" and made.resize < 1):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{place}: the size {size!r} of images is not understood. Get the model again.") from None
        return made

    @classmethod
    def from_open_clip(cls, config: dict[str, Any]) -> "ImageTransform":
        """From the preprocessing that open_clip keeps with a model."""
        size = config["size"]
        size = (size, size) if isinstance(size, int) else (size[0], size[1])
        fit: dict[str, Literal["crop", "squash", "pad"]] = {"shortest": "crop", "squash": "squash", "longest": "pad"}
        return cls(
            size,
            fit[config["resize_mode"]],
            resize=min(size),
            resample=_RESAMPLING[config["interpolation"]],
            mean=tuple(config["mean"]),
            std=tuple(config["std"]),
            fill=config["fill_color"],
            round_half=True,
        )


def patched_size(height: int, width: int, patch: int, most: int) -> tuple[int, int]:
    """The largest size of about this shape that `most` patches cover, as SigLIP 2 finds it (by bisection of the scale)."""

    def scaled(scale: float) -> tuple[int, int]:
        return max(patch, ceil(height * scale / patch) * patch), max(patch, ceil(width * scale / patch) * patch)

    low, high = 1e-6, 100.0
    while high - low >= 1e-5:
        middle = (low + high) / 2
        tall, wide = scaled(middle)
        if (tall // patch) * (wide // patch) <= most:
            low = middle
        else:
            high = middle
    return scaled(low)

"""Image preprocessing: resizing and cropping exactly as the model's own library does it.

The result stays in bytes. Scaling to 0…1 and normalization happen on the model's device, which is faster and transfers a quarter
of the data.
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

_MOST_PIXELS, _MOST_RESIZED = 4096, 100_000_000
"""Of a side of the images that a model takes, and of an image before it is cropped."""
_MAX_ASPECT_RATIO = 200
"""A narrower image would take gigabytes once its shorter side is resized."""
_RESAMPLING = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}


@dataclass(frozen=True)
class ImageTransform:
    """The preprocessing of a model. `fit` is the way in which an image is brought to `size` (height, width):

    - `crop`: the shorter side is resized to `resize`, then the centre is cropped;
    - `squash`: both sides are resized, without regard to the aspect ratio;
    - `pad`: the longer side is resized, and the rest is filled with `fill`;
    - `patches`: the aspect ratio is kept, with at most `most_patches` patches of `patch` pixels (SigLIP 2 NaFlex).
    """

    size: tuple[int, int]
    fit: Literal["crop", "squash", "pad", "patches"] = "crop"
    resize: int = 0
    resample: int = Resampling.BICUBIC
    mean: tuple[float, ...] = OPENAI_MEAN
    std: tuple[float, ...] = OPENAI_STD
    fill: int = 0
    round_half: bool = False
    """Whether an odd margin of the crop is rounded, as in torchvision, or rounded down, as in transformers."""
    patch: int = 16
    most_patches: int = 256

    def __post_init__(self) -> None:
        """Raises `ValueError` or `TypeError` for sizes that no model has, which a damaged or hostile configuration may name."""
        sides = (*self.size, self.patch, *([self.resize] if self.fit == "crop" else []))
        if not all(isinstance(side, int) and 0 < side <= _MOST_PIXELS for side in sides) or not 0 < self.most_patches <= 2**16:
            raise ValueError(f"an image size of {sides}")

    def __call__(self, image: Image.Image) -> Pixels:
        match self.fit:
            case "crop":
                resized = self._crop(image)
            case "squash":
                resized = self._resize(image, self.size)
            case "pad":
                resized = self._pad(image)
            case "patches":
                resized = self._resize(image, patched_size(image.height, image.width, self.patch, self.most_patches))
        return np.asarray(resized)

    @property
    def most_bytes(self) -> int:
        """The most bytes that the pixels of an image take."""
        pixels = self.most_patches * self.patch**2 if self.fit == "patches" else self.size[0] * self.size[1]
        return 3 * pixels

    def _resize(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        height, width = size
        return image if image.size == (width, height) else image.resize((width, height), self.resample)

    def _crop(self, image: Image.Image) -> Image.Image:
        width, height = image.size
        short, long = min(width, height), max(width, height)
        if long > _MAX_ASPECT_RATIO * short:
            raise ValueError(f"it is {width} x {height} pixels, which is too narrow")
        stretched = int(self.resize * long / short)
        if stretched * self.resize > _MOST_RESIZED:
            raise ValueError(f"it is {width} x {height} pixels, and would be {stretched} x {self.resize}")
        resized = self._resize(image, (self.resize, stretched) if width > height else (stretched, self.resize))
        top, left = ((side - crop) / 2 for side, crop in zip((resized.height, resized.width), self.size, strict=True))
        top, left = (round(top), round(left)) if self.round_half else (int(top // 1), int(left // 1))
        return resized.crop((left, top, left + self.size[1], top + self.size[0]))

    def _pad(self, image: Image.Image) -> Image.Image:
        height, width = self.size
        ratio = max(image.height / height, image.width / width)
        resized = self._resize(image, (max(1, round(image.height / ratio)), max(1, round(image.width / ratio))))
        canvas = Image.new("RGB", (width, height), (self.fill,) * 3)
        canvas.paste(resized, ((width - resized.width) // 2, (height - resized.height) // 2))
        return canvas

    @classmethod
    def from_transformers(cls, config: dict[str, Any], path: str) -> "ImageTransform":
        """The transform of a `preprocessor_config.json`. `path` is where it was read, for messages."""
        kind = str(config.get("image_processor_type", config.get("feature_extractor_type", "")))
        try:
            mean, std = _channel_statistics(config, kind)
        except (TypeError, ValueError):
            mean, std = (), ()
        if len(mean) != 3 or len(std) != 3 or 0 in std:
            raise InputError(f"{path}: the mean and standard deviation of colours cannot be used. Get the model again.")
        size = config.get("size", 224)
        resample = config.get("resample", Resampling.BICUBIC)
        try:
            if kind.startswith("Siglip2"):
                return cls._from_naflex(config, mean, std)
            return cls._from_size(size, config.get("crop_size", size), resample=resample, mean=mean, std=std)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: the image size {size!r} cannot be used. Get the model again.") from None

    @classmethod
    def _from_naflex(cls, config: dict[str, Any], mean: tuple[float, ...], std: tuple[float, ...]) -> "ImageTransform":
        patch, max_patches = config.get("patch_size", 16), config.get("max_num_patches", 256)
        side = int(max_patches**0.5) * patch
        resample = config.get("resample", Resampling.BILINEAR)
        return cls((side, side), "patches", resample=resample, mean=mean, std=std, patch=patch, most_patches=max_patches)

    @classmethod
    def _from_size(cls, size: Any, crop: Any, **fields: Any) -> "ImageTransform":
        """Squash to a height and width, or crop after resizing the shorter side; sizes are numbers or dicts of transformers."""
        if isinstance(size, dict) and "height" in size:
            return cls((size["height"], size["width"]), "squash", **fields)
        short: int = size["shortest_edge"] if isinstance(size, dict) else size
        height, width = (crop.get(side, short) if isinstance(crop, dict) else crop for side in ("height", "width"))
        return cls((height, width), "crop", resize=short, **fields)

    @classmethod
    def from_open_clip(cls, config: dict[str, Any]) -> "ImageTransform":
        """The transform of open_clip's preprocessing settings (`preprocess_cfg`)."""
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


def _channel_statistics(config: dict[str, Any], kind: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each colour channel; without any in `config`, the defaults of its image processor."""
    half = (0.5, 0.5, 0.5)
    default_mean, default_std = (half, half) if kind.startswith("Siglip") else (OPENAI_MEAN, OPENAI_STD)
    mean, std = config.get("image_mean") or default_mean, config.get("image_std") or default_std
    return tuple(float(value) for value in mean), tuple(float(value) for value in std)


def patched_size(height: int, width: int, patch: int, max_patches: int) -> tuple[int, int]:
    """The largest size of about this aspect ratio that `max_patches` patches cover, by bisection of the scale as in SigLIP 2."""

    def scaled(scale: float) -> tuple[int, int]:
        return max(patch, ceil(height * scale / patch) * patch), max(patch, ceil(width * scale / patch) * patch)

    low, high = 1e-6, 100.0
    while high - low >= 1e-5:
        middle = (low + high) / 2
        tall, wide = scaled(middle)
        if (tall // patch) * (wide // patch) <= max_patches:
            low = middle
        else:
            high = middle
    return scaled(low)

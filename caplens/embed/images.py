"""Reading and decoding images, whatever state they are in: each as a person would see it, or one sentence why not."""

import io
from os import PathLike
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from caplens.data.media import ImageSource, MissingImage, media_name
from caplens.embed.keys import file_key, pixels_key


class UnreadableError(Exception):
    """An image that cannot be read; the message says why."""


def read(image: ImageSource) -> bytes | Image.Image:
    """The bytes of an image, or the image itself if it is in memory."""
    if isinstance(image, Image.Image):
        return image
    if isinstance(image, MissingImage):
        raise UnreadableError(image.reason)
    if isinstance(image, str) and image.startswith(("http://", "https://")):
        raise UnreadableError(f"{image} is an address; images are not downloaded")
    if not isinstance(image, str | PathLike | bytes):
        raise UnreadableError(f"an image is a path, bytes or a PIL image, not {type(image).__name__}")
    try:
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
    except FileNotFoundError:
        raise UnreadableError(f"there is no file {media_name(image)}") from None
    except IsADirectoryError:
        raise UnreadableError(f"{media_name(image)} is a folder") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{media_name(image)} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not data:
        raise UnreadableError(f"{media_name(image)} is empty")
    return data


def image_key(data: bytes | Image.Image) -> bytes:
    """By content: of a file its bytes, of an image in memory its pixels as they are seen."""
    return pixels_key(decode(data)) if isinstance(data, Image.Image) else file_key(data)


def decode(data: bytes | Image.Image, name: str = "the image") -> Image.Image:
    """The image upright, in RGB: the first frame of an animation, transparency on white."""
    try:
        image = data if isinstance(data, Image.Image) else Image.open(io.BytesIO(data))
        if 0 in image.size:
            raise UnreadableError("has no pixels")
        image.load()
        return _in_colour(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:
        raise UnreadableError(f"{name} is not an image that can be read") from None
    except Image.DecompressionBombError:
        raise UnreadableError(f"{name} has more pixels than can be unpacked safely") from None
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from None
    except Exception as error:
        # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error, … for damaged files.
        raise UnreadableError(f"{name} is damaged ({str(error) or type(error).__name__})") from None


def _in_colour(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I"):
        wide = np.asarray(image).astype(np.int64)
        return Image.fromarray((np.clip(wide, 0, 65535) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise UnreadableError("has pixels of floating-point numbers, whose range is not known; convert it to 8 bits")
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, seen).convert("RGB")
    return image.convert("RGB")

"""Opening pictures, whatever state they are in: each is read as a person would see it, or there is a sentence why not."""

import hashlib
import io
from os import PathLike
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from caplens.data.sample import NoPicture, Picture

_KEY_BYTES = 16


class UnreadableError(Exception):
    """A picture that cannot be read; the message says why."""


def content_key(kind: bytes, content: bytes) -> bytes:
    """What stands for an image or text: its kind and a hash of what it holds."""
    return kind + hashlib.sha256(content).digest()[:_KEY_BYTES]


def name_of(picture: Picture) -> str:
    return str(picture) if isinstance(picture, str | PathLike) else "the image"


def read(picture: Picture) -> bytes | Image.Image:
    """A picture's bytes, or the picture if it is one already."""
    if isinstance(picture, Image.Image):
        return picture
    if isinstance(picture, NoPicture):
        raise UnreadableError(picture.reason)
    if isinstance(picture, str) and picture.startswith(("http://", "https://")):
        raise UnreadableError(f"{picture} is an address; images are not downloaded")
    if not isinstance(picture, str | PathLike | bytes):
        raise UnreadableError(f"an image is a path, bytes or a PIL image, not {type(picture).__name__}")
    try:
        data = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
    except FileNotFoundError:
        raise UnreadableError(f"there is no file {name_of(picture)}") from None
    except IsADirectoryError:
        raise UnreadableError(f"{name_of(picture)} is a folder") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{name_of(picture)} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not data:
        raise UnreadableError(f"{name_of(picture)} is empty")
    return data


def picture_key(data: bytes | Image.Image) -> bytes:
    """By what the picture holds, so that copies of a file share a vector; for one in memory, by what is seen of it."""
    if isinstance(data, Image.Image):
        seen = decode(data)
        return content_key(b"p", f"{seen.size}".encode() + seen.tobytes())
    return content_key(b"i", data)


def decode(data: bytes | Image.Image, name: str = "the image") -> Image.Image:
    """The picture upright, in RGB: the first image of an animation, what is transparent in white."""
    try:
        image = data if isinstance(data, Image.Image) else Image.open(io.BytesIO(data))
        if 0 in image.size:
            raise UnreadableError("has no pixels")
        image.load()
        return _in_colour(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:
        raise UnreadableError(f"{name} is no image that can be read") from None
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

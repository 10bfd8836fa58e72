"""Reading and decoding images, whatever state they are in: each as a person would see it, or one sentence why not.

A small file can hold an image that fills the memory. What an image takes is known from its header: one that takes more than the
limit is refused, and all that are decoded at one time share the limit.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from os import PathLike
from typing import IO

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from caplens.data.files import open_regular
from caplens.data.media import ADDRESS, ImageSource, MissingImage, media_name
from caplens.embed.keys import file_key, pixels_key, stream_key
from caplens.embed.memory import VARIABLE, MemoryBudget

_FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "TGA")
"""What is opened, where Pillow or a plugin of it can.

Formats that call other programs, as EPS does, are not among them, nor are JPEG 2000, AVIF and HEIF: a file of 3 KB can take
gigabytes, and its header need not say so.
"""
_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}
"""Mode -> bytes of a pixel in Pillow; 4 for all others."""
_CODEC_BYTES = {"MPO": 6, "WEBP": 12, "TIFF": 8}
"""Format -> bytes of a pixel that its decoder keeps beside the image."""
_SEVERAL_SCANS_BYTES = 6
"""The same for a JPEG of several scans, whose coefficients are kept until the last."""
_TILE_WIDTH, _TILE_HEIGHT, _ROWS_PER_STRIP = 322, 323, 278
"""Tags of a TIFF."""
_JPEG, _EXIF, _MOST_EXIF = b"\xff\xd8", b"Exif\0\0", 100
"""What a JPEG and each segment of EXIF begin with. Programs write one, or a few of 64 KB each."""
_PIECE = 1 << 20
_SCAN, _MOST_SCANS = b"\xff\xda", 100
"""What each scan of a JPEG begins with. Programs write about ten."""
_ISO_MEDIA, _ISO_MEDIA_AT = b"ftyp", 4
"""What files of AVIF and HEIF have, and where."""
_STRIP = 1 << 20
"""Pixels that are converted at a time, so that converting takes no memory to speak of."""


class UnreadableError(Exception):
    """An image that cannot be read; the message says why."""


class TooLargeError(UnreadableError):
    """An image whose decoding takes more memory than the limit."""


budget = MemoryBudget()
"""Of this process."""


def image_key(source: ImageSource) -> bytes:
    """By content: of a file its bytes, of an image in memory its pixels as they are seen."""
    if isinstance(source, Image.Image):
        with opened(source) as image:
            return pixels_key(image)
    if isinstance(source, bytes):
        return file_key(source)
    with _open_file(source) as (file, name):
        try:
            return stream_key(file)
        except OSError as error:
            raise UnreadableError(f"{name} cannot be read ({error.strerror or error})") from None


@contextmanager
def opened(source: ImageSource, key: bytes | None = None) -> Iterator[Image.Image]:
    """The image upright, in RGB, as long as the block runs: the first frame of an animation, transparency on white.

    With a key, its content must still have that key.
    """
    with _decoding(source, key) as image:
        try:
            yield image
        finally:
            image.close()


@contextmanager
def _decoding(source: ImageSource, key: bytes | None = None) -> Iterator[Image.Image]:
    """The image, with memory for it set aside."""
    if isinstance(source, Image.Image):
        with budget.taken(_needed(source, "the image")):
            yield _decoded(source, "the image")
        return
    with _open_file(source) as (file, name):
        size = file.seek(0, os.SEEK_END)
        _check_exif(file, name)
        needed = size + _needed(_identified(file, name), name)
        _check_memory(needed, name)
        with budget.taken(needed):
            try:
                file.seek(0)
                content = file.read(size)
            except OSError as error:
                raise UnreadableError(f"{name} cannot be read ({error.strerror or error})") from None
            if key is not None and file_key(content) != key:
                raise UnreadableError(f"{name} changed while it was read")
            image = _identified(io.BytesIO(content), name)
            _load(image, name)
            # In a PNG, what says that it is to be turned may come after the pixels.
            _check_memory(size + _needed(image, name), name)
            yield _decoded(image, name, own=True)


def decode(source: ImageSource) -> Image.Image:
    """The image upright, in RGB, to be kept."""
    with _decoding(source) as image:
        return image


@contextmanager
def _open_file(source: ImageSource) -> Iterator[tuple[IO[bytes], str]]:
    """The content of an image file, and the name by which messages call it."""
    if isinstance(source, MissingImage):
        raise UnreadableError(source.reason)
    if isinstance(source, str) and ADDRESS.match(source):
        raise UnreadableError(f"{source} is an address; images are not downloaded")
    if not isinstance(source, str | PathLike | bytes):
        raise UnreadableError(f"an image is a path, bytes or a PIL image, not {type(source).__name__}")
    name = media_name(source)
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else open_regular(source)
        empty = not file.read(1)
        file.seek(0)
    except FileNotFoundError:
        raise UnreadableError(f"there is no file {name}") from None
    except IsADirectoryError:
        raise UnreadableError(f"{name} is a folder") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with file:
        if empty:
            raise UnreadableError(f"{name} is empty")
        _check_memory(file.seek(0, os.SEEK_END), name)
        file.seek(0)
        yield file, name


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def _identified(file: IO[bytes], name: str) -> Image.Image:
    """The image of a file, of which only the header was read."""
    try:
        return Image.open(file, formats=_formats())
    except UnidentifiedImageError:
        file.seek(_ISO_MEDIA_AT)
        if file.read(len(_ISO_MEDIA)) == _ISO_MEDIA:
            raise UnreadableError(f"{name} is in AVIF or HEIF, which is not read; convert it to PNG, WebP or JPEG") from None
        raise UnreadableError(f"{name} is not an image that can be read") from None
    except Image.DecompressionBombError:
        raise TooLargeError(f"{name} has more pixels than can be unpacked safely") from None
    except Exception as error:
        raise _damaged(name, error) from None


def _check_exif(file: IO[bytes], name: str) -> None:
    """Of a JPEG: Pillow puts its segments of EXIF together one by one, each time anew."""
    file.seek(0)
    if file.read(len(_JPEG)) == _JPEG:
        # A segment that lies across two pieces is not counted; it is not about the last one.
        segments = sum(piece.count(_EXIF) for piece in iter(lambda: file.read(_PIECE), b""))
        if segments > _MOST_EXIF:
            raise UnreadableError(f"{name} is a JPEG with more than {_MOST_EXIF} segments of EXIF")
    file.seek(0)


def _needed(image: Image.Image, name: str) -> int:
    """Bytes that decoding an image takes at most, beside its file."""
    stored = _BYTES.get(image.mode, 4)
    codec = _CODEC_BYTES.get(image.format or "", 0)
    if image.format == "JPEG" and _scan_count(image) > 1:
        codec = _SEVERAL_SCANS_BYTES
    turned = stored if _is_turned(image, name) else 0
    converted = 0 if image.mode == "RGB" else 4
    # The decoder's memory is free again when the image is turned or converted.
    return image.width * image.height * (stored + max(codec, turned, converted)) + _tile_bytes(image)


def _tile_bytes(image: Image.Image) -> int:
    """What a tile or strip of a TIFF takes, which may be larger than the image."""
    tags = getattr(image, "tag_v2", None)
    if tags is None:
        return 0
    try:
        width, height, rows = (int(tags.get(tag) or 0) for tag in (_TILE_WIDTH, _TILE_HEIGHT, _ROWS_PER_STRIP))
    except (TypeError, ValueError):
        # Decoding says what is wrong.
        return 0
    return 4 * max(width * height, min(rows, image.height) * image.width)


def _is_turned(image: Image.Image, name: str) -> bool:
    """Whether the image is stored on its side or mirrored, as far as that is known: a PNG would be decoded to ask for it."""
    if image.format == "PNG" and "exif" not in image.info:
        return False
    try:
        return bool(image.getexif().get(ExifTags.Base.Orientation, 1) != 1)
    except Exception as error:
        raise _damaged(name, error) from None


def _check_memory(needed: int, name: str) -> None:
    if needed > budget.limit:
        raise TooLargeError(
            f"{name} takes {needed >> 20:,} MB of memory to decode, and the limit is {budget.limit >> 20:,} MB; the environment"
            f" variable {VARIABLE} raises it"
        )


def _load(image: Image.Image, name: str) -> None:
    if 0 in image.size:
        raise UnreadableError(f"{name} has no pixels")
    if image.format == "JPEG" and _scan_count(image) > _MOST_SCANS:
        raise UnreadableError(f"{name} is a JPEG of more than {_MOST_SCANS} scans, each of which takes as long as an image")
    try:
        image.load()
    except Exception as error:
        raise _damaged(name, error) from None


def _scan_count(image: Image.Image) -> int:
    """How many scans a JPEG has: each is a pass over all of its pixels. 0 where its file is not at hand any more."""
    file = getattr(image, "fp", None)
    if file is None:
        return 0
    place = file.tell()
    file.seek(0)
    count: int = file.read().count(_SCAN)
    file.seek(place)
    return count


def _decoded(image: Image.Image, name: str, *, own: bool = False) -> Image.Image:
    """The image in RGB; `own` where nobody else has it, so that it may be turned in place."""
    _load(image, name)
    try:
        if own:
            ImageOps.exif_transpose(image, in_place=True)
            return _in_colour(image)
        return _in_colour(ImageOps.exif_transpose(image))
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from None
    except Exception as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> UnreadableError:
    """Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error, … for damaged files."""
    return UnreadableError(f"{name} is damaged ({str(error) or type(error).__name__})")


def _in_colour(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image
    if image.mode == "F":
        raise UnreadableError("has pixels of floating-point numbers, whose range is not known; convert it to 8 bits")
    if not image.mode.startswith("I") and not image.has_transparency_data:
        return image.convert("RGB")
    coloured = Image.new("RGB", image.size)
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        coloured.paste(_wide_in_colour(strip) if image.mode.startswith("I") else _on_white(strip), (0, top))
    return coloured


def _wide_in_colour(image: Image.Image) -> Image.Image:
    """Pixels of 16 bits in 8."""
    wide = np.asarray(image).astype(np.int64)
    return Image.fromarray((np.clip(wide, 0, 65535) >> 8).astype(np.uint8)).convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    seen = image.convert("RGBA")
    white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, seen).convert("RGB")

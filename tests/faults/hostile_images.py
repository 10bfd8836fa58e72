"""Images made to break a decoder: bombs in every format, files that never end, and damage."""

import io
import os
import struct
import zlib
from pathlib import Path

from PIL import Image, features


def write_hostile_images(folder: Path, count: int) -> list[Path]:
    """Write `count` hostile images of all kinds in turn; returns their paths."""
    kinds = {name: make for name, make in KINDS.items() if name not in _CODEC or features.check(_CODEC[name])}
    made: dict[str, bytes] = {}
    paths = []
    for number in range(count):
        name = list(kinds)[number % len(kinds)]
        content = made.setdefault(name, kinds[name]())
        path = folder / f"{number}-{name}.jpg"
        # Bytes after the end keep two of a kind from being one image, which would be decoded once.
        path.write_bytes(content + str(number).encode())
        paths.append(path)
    return paths


_CODEC = {"webp": "webp", "avif": "avif", "jpeg2000": "jpg_2000"}


def _png(width: int, height: int, depth: int, colour: int, *, interlaced: bool = False, more: bytes = b"") -> bytes:
    """A PNG of zeros, made without ever holding its pixels."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = bytes(1 + (width * depth * channels + 7) // 8)
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    palette = _chunk(b"PLTE", bytes(6)) if colour == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + palette + more + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _saved(form: str, size: tuple[int, int], mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size).save(out, form, **options)
    return out.getvalue()


def _turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return _saved("JPEG", (8000, 8000), exif=exif)


KINDS = {
    "grey": lambda: _png(13000, 13000, 8, 0),
    "bits": lambda: _png(13000, 13000, 1, 0),
    "rgb": lambda: _png(13000, 13000, 8, 2),
    "palette": lambda: _png(13000, 13000, 8, 3, more=_chunk(b"tRNS", b"\x00\x80")),
    "rgba": lambda: _png(13000, 13000, 8, 6),
    "small rgba": lambda: _png(7000, 7000, 8, 6),
    "wide": lambda: _png(9000, 9000, 16, 0),
    "grey and alpha": lambda: _png(7000, 7000, 16, 4),
    "small rgb": lambda: _png(10000, 10000, 8, 2),
    "narrow": lambda: _png(1, 1_000_000, 8, 2),
    "flat": lambda: _png(1_000_000, 1, 8, 6),
    "jpeg": lambda: _saved("JPEG", (10000, 10000)),
    "progressive": lambda: _saved("JPEG", (6500, 6500), progressive=True),
    "turned": _turned,
    "cmyk": lambda: _saved("JPEG", (7000, 7000), "CMYK"),
    "gif": lambda: _saved("GIF", (10000, 10000), "L"),
    "tiff": lambda: _saved("TIFF", (6000, 6000), compression="tiff_adobe_deflate"),
    "webp": lambda: _saved("WEBP", (6000, 6000)),
    "avif": lambda: _saved("AVIF", (4000, 4000), speed=10),
    "jpeg2000": lambda: _saved("JPEG2000", (4000, 4000)),
    "billion": lambda: _png(100, 100, 8, 2).replace(struct.pack(">II", 100, 100), struct.pack(">II", 40000, 40000)),
    "cut": lambda: _saved("JPEG", (3000, 3000))[:2000],
    "postscript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\nshowpage\n",
    "noise": lambda: os.urandom(100_000),
}

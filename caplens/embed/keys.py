"""Keys by content: equal images and equal texts have equal keys, wherever they come from."""

import hashlib
import os
from typing import IO, NamedTuple

from PIL import Image

_KEY_BYTES = 16
_FILE = b"i"


class Text(NamedTuple):
    """A caption and the prompt that goes before it, or before each of its sentences; its language if the model reads that."""

    caption: str
    prompt: str = ""
    lang: str = ""

    @property
    def whole(self) -> str:
        return self.prompt + self.caption


def content_key(kind: bytes, content: bytes) -> bytes:
    """The key of an image or text: its kind and a hash of its content."""
    return kind + hashlib.sha256(content).digest()[:_KEY_BYTES]


def stream_key(file: IO[bytes]) -> bytes:
    """The key of an image file, whose content is read piece by piece; equal to `file_key` of the whole."""
    return _FILE + hashlib.file_digest(file, "sha256").digest()[:_KEY_BYTES]  # type: ignore[arg-type]


def text_key(text: Text) -> bytes:
    language = f"\0{text.lang}" if text.lang else ""
    return content_key(b"t", (text.whole + language).encode("utf-8", "surrogatepass"))


def file_key(content: bytes) -> bytes:
    """Of the bytes of an image file, so that copies of a file share a vector."""
    return content_key(_FILE, content)


def file_version(path: str) -> tuple[str, int, int] | None:
    """By which a file is known to be unchanged; None for one that does not exist."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    return path, stat.st_size, stat.st_mtime_ns


def pixels_key(image: Image.Image) -> bytes:
    """Of an image in memory, by its pixels."""
    return content_key(b"p", f"{image.size}".encode() + image.tobytes())

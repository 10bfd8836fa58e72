"""What an executor is: items in, batches of vectors out, in any order and as soon as they are ready."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from caplens.arrays import Vectors
from caplens.embed.decode_pool import ImageItem
from caplens.embed.keys import Text


class EncodedBatch(NamedTuple):
    """Vectors by key, and the items that could not be encoded."""

    keys: list[bytes]
    vectors: Vectors
    flags: list[bool]
    """Texts that were truncated; images that are out of the model's domain."""
    errors: dict[bytes, str]
    """Key -> why it has no vector."""


class Executor(Protocol):
    """Turns items into vectors with one model."""

    def encode_images(self, items: Iterable[ImageItem], expected: int) -> Iterator[EncodedBatch]:
        """Batches of image vectors; `expected` is about how many items there are."""
        ...

    def encode_texts(self, texts: Mapping[bytes, Text]) -> Iterator[EncodedBatch]: ...

    def close(self) -> None:
        """Release processes; the executor can be used again."""
        ...

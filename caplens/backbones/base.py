"""What an encoder of images and texts is.

Encoding is split where it helps the embedding engine: `pixels` and `tokenize` need no model and run in other threads, while
`encode_pixels` and `encode_ids` are the forward passes. `encode_images` and `encode_texts` do both.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from caplens.arrays import Flags, Vectors
from caplens.backbones.load_options import BackboneSpec
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.errors import InputError


class Tokens(NamedTuple):
    """A text as a model reads it."""

    ids: list[int]
    cut: bool
    """Whether the text was longer than the model takes."""


class Backbone(ABC):
    """An encoder of images and texts into one space. Vectors are of length one.

    Making one looks up its files; weights are loaded when something is first encoded.
    """

    name: str
    fingerprint: str
    """A hash of the weights and of everything else that changes an embedding."""
    device: str = "cpu"
    dtype: str = "fp32"
    reads_language: bool = False
    """Whether the language of a text changes its vector."""
    licence: str | None = None
    languages: str | None = None
    weight: float | None = None
    """What CLIPScore multiplies cosines with, where that is not the metric's own choice: it was made for CLIP's small ones."""
    tuned: str | None = None
    """The recipe of `caplens train` that made it what it is, if one did."""
    spec: BackboneSpec | None = None
    """How another process can open the same model; None for one that was made in Python."""
    prompted: bool = True
    """Whether the prompts of metrics, which were made for CLIP, suit it."""

    @property
    @abstractmethod
    def dim(self) -> int: ...

    @property
    @abstractmethod
    def max_tokens(self) -> int: ...

    @abstractmethod
    def pixels(self, image: Image) -> Pixels:
        """The image resized and cropped for this model: height, width, RGB."""

    @property
    def transform(self) -> ImageTransform | None:
        """What `pixels` does, where that can be said: other processes can then do it."""
        return None

    def stack(self, images: Sequence[Pixels]) -> Any:
        """Several images as `encode_pixels` takes them."""
        return np.stack(images)

    @abstractmethod
    def encode_pixels(self, batch: Any) -> Vectors: ...

    def out_of_domain(self, batch: Any) -> Flags:
        """Which images of a batch are unlike those that the model was trained on, as far as it can tell."""
        return np.zeros(len(batch), dtype=bool)

    def coverage_warning(self, text: str, lang: str | None) -> str | None:
        """Why the model is no judge of a text in this language, if that is known."""
        return None

    @abstractmethod
    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        """Texts as numbers; one that is too long is cut, with its end marker kept.

        `langs` are their languages, for a model that reads them; without any, texts are English.
        """

    @abstractmethod
    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors: ...

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        if not images:
            return np.zeros((0, self.dim), dtype=np.float32)
        return self.encode_pixels(self.stack([self.pixels(image.convert("RGB")) for image in images]))

    def encode_texts(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> Vectors:
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts are a list of strings.")
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return self.encode_ids([tokens.ids for tokens in self.tokenize(texts, langs)])

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """A vector for each token of each text, markers of begin and end included."""
        raise NotImplementedError(f"{self.name} has no vectors of tokens")


def normalized(vectors: NDArray[Any]) -> Vectors:
    """Vectors of length one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Vectors = (vectors / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return made

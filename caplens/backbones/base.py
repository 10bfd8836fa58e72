"""The interface of an encoder of images and texts.

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
from caplens.errors import CaplensError, InputError, option


class Tokens(NamedTuple):
    """The token ids of a text, markers included.

    Attributes
    ----------
    ids
        Token ids, at most `Backbone.max_tokens` of them.
    cut
        Whether the text was truncated to fit the model.
    """

    ids: list[int]
    cut: bool


class Backbone(ABC):
    """An encoder of images and texts into one space, with vectors of length one.

    The constructor looks up the model's files. Weights are loaded when something is first encoded.
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
    """The factor that CLIPScore scales cosines with; None for the metric's own, which was chosen for CLIP's small cosines."""
    tuned: str | None = None
    """The recipe of `caplens train` that the model was fine-tuned with, if any."""
    spec: BackboneSpec | None = None
    """The name and options that load the same model in another process; None for a model that was built in Python."""
    prompted: bool = True
    """Whether metrics use their default prompts, which were written for CLIP."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of dimensions of a vector."""

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """The most tokens that a text may have, markers included."""

    @abstractmethod
    def pixels(self, image: Image) -> Pixels:
        """The image, resized and cropped for this model, as an array (height, width, 3) of bytes."""

    @property
    def transform(self) -> ImageTransform | None:
        """The transform that `pixels` applies, for worker processes; None if only `pixels` can do it."""
        return None

    def stack(self, images: Sequence[Pixels]) -> Any:
        """Combine the pixels of several images into a batch for `encode_pixels`."""
        return np.stack(images)

    @abstractmethod
    def encode_pixels(self, batch: Any) -> Vectors:
        """The vectors of a batch that `stack` returned."""

    def out_of_domain(self, batch: Any) -> Flags:
        """Which images of a batch are unlike the training images, where the model can detect that."""
        return np.zeros(len(batch), dtype=bool)

    def coverage_warning(self, text: str, lang: str | None) -> str | None:
        """Why scores of a text in this language are unreliable; None if no reason is known."""
        return None

    @abstractmethod
    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        """The token ids of texts. A text that is too long is truncated and keeps its end marker.

        `langs` are the texts' languages, for a model with `reads_language`; by default, texts are English.
        """

    @abstractmethod
    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """The vectors of texts, given their token ids."""

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """Encode images.

        Parameters
        ----------
        images
            PIL images, of any size and mode.

        Returns
        -------
        Vectors
            An array (images, dim) of float32 rows of length one.
        """
        if not images:
            return np.zeros((0, self.dim), dtype=np.float32)
        return self.encode_pixels(self.stack([self.pixels(image.convert("RGB")) for image in images]))

    def encode_texts(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> Vectors:
        """Encode texts.

        Parameters
        ----------
        texts
            A list of strings. A text that is longer than the model takes is truncated.
        langs
            Their languages, for a model with `reads_language`; by default, texts are English.

        Returns
        -------
        Vectors
            An array (texts, dim) of float32 rows of length one.

        Raises
        ------
        InputError
            If `texts` is not a list of strings.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts must be a list of strings.")
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return self.encode_ids([tokens.ids for tokens in self.tokenize(texts, langs)])

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode each token of texts.

        Parameters
        ----------
        texts
            A list of strings.

        Returns
        -------
        list of Vectors
            For each text, an array (tokens, dim) of rows of length one, start and end markers included.

        Raises
        ------
        NotImplementedError
            If the model has no token vectors.
        """
        raise NotImplementedError(f"{self.name} has no token vectors")


def check_finite(backbone: Backbone, vectors: Vectors) -> None:
    """Raise an error if a model returned something that is not a number."""
    if not np.isfinite(vectors).all():
        advice = "Its weights are damaged." if backbone.dtype == "fp32" else f"Try {option('dtype', 'fp32')}."
        raise CaplensError(f"{backbone.name} returns vectors that are not finite numbers in {backbone.dtype}. {advice}")


def normalized(vectors: NDArray[Any]) -> Vectors:
    """The vectors scaled to length one, in float32."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return unit

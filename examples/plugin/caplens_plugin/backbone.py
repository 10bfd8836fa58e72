"""A model family: `colours:rgb` knows the colours of images and the names of colours, and nothing else."""

from collections.abc import Sequence

import numpy as np
from PIL.Image import Image

from caplens.backbones import Backbone, Tokens
from caplens.backbones.base import normalized
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName

_COLOURS = {"red": (1.0, 0.0, 0.0), "green": (0.0, 1.0, 0.0), "blue": (0.0, 0.0, 1.0), "grey": (1.0, 1.0, 1.0)}


class Colours(Backbone):
    fingerprint, dim, max_tokens = "colours-1", 3, 64  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def pixels(self, image: Image) -> np.ndarray:
        return np.asarray(image.resize((8, 8)))

    def encode_pixels(self, batch: np.ndarray) -> np.ndarray:
        return normalized(batch.reshape(len(batch), -1, 3).mean(axis=1) / 255)

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        names = list(_COLOURS)
        numbers = [[names.index(word) for word in text.lower().split() if word in names] for text in texts]
        return [Tokens(ids[: self.max_tokens], len(ids) > self.max_tokens) for ids in numbers]

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> np.ndarray:
        colours = np.array(list(_COLOURS.values()))
        return normalized(np.array([colours[list(ids)].mean(axis=0) if len(ids) else np.ones(3) for ids in batch]))


def load(name: ModelName, options: LoadOptions) -> Backbone:
    """The entry point: `name` is what the user wrote, as in `colours:rgb`."""
    return Colours(name.full)

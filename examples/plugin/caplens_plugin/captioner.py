"""A captioner: names the colour that an image has most of."""

from collections.abc import Sequence

import numpy as np
from PIL.Image import Image

_NAMES = ("red", "green", "blue")


def load(device: str):
    """The entry point: returns a function from images to captions."""

    def describe(images: Sequence[Image]) -> list[str]:
        means = [np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0) for image in images]
        return [f"something {_NAMES[int(mean.argmax())]}" for mean in means]

    return describe

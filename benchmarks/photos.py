"""Synthetic photos for the speed scripts, as large as those of Flickr8k and about as expensive to decode."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter


def make(folder: Path, count: int, size: tuple[int, int] = (500, 375)) -> list[str]:
    """Write JPEGs of noise at several scales, as in photos; about 100 kB each. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    noise = Image.fromarray(generator.integers(0, 256, (size[1] * 2, size[0] * 2, 3), dtype=np.uint8))
    coarse = noise.filter(ImageFilter.GaussianBlur(12))
    paths = []
    for number in range(count):
        left, top = generator.integers(0, size[0]), generator.integers(0, size[1])
        box = (left, top, left + size[0], top + size[1])
        picture = Image.blend(coarse.crop(box).point(lambda value: (value - 118) * 8), noise.crop(box), 0.2)
        paths.append(str(folder / f"{number:06}.jpg"))
        picture.save(paths[-1], quality=95)
    return paths

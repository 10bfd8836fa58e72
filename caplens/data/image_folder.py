"""The images of captions, looked up in a folder by name or by id."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from PIL.Image import Image

from caplens.data.media import ImageSource, MissingImage
from caplens.data.sample import Sample
from caplens.errors import InputError

_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


def with_images(samples: Iterable[Sample], folder: str | PathLike[str]) -> Iterator[Sample]:
    """Each sample with its image looked up in `folder`: by its `image`, else by its id with a usual suffix."""
    root = os.path.abspath(folder)  # noqa: PTH100
    if not Path(root).is_dir():
        raise InputError(f"{folder}: there is no such folder of images.")
    return (
        sample if isinstance(sample.image, bytes | Image) else replace(sample, image=_image_in(root, sample))
        for sample in samples
    )


def _image_in(root: str, sample: Sample) -> ImageSource:
    """By its name, or by its name with another of the usual suffixes; never from outside the folder."""
    named = isinstance(sample.image, str | PathLike) and str(sample.image)
    name = str(sample.image) if named else sample.id
    if "://" in name:
        return name
    path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118
    if not path.startswith(os.path.join(root, "")):  # noqa: PTH118
        return MissingImage(f"the image {name} is outside the folder {root}")
    if os.path.isfile(path):  # noqa: PTH113
        return path
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    stems = (path, stem) if suffix.lower() in _SUFFIXES else (path,)
    candidates = (stem + suffix for stem in stems for suffix in _SUFFIXES)
    absent = path if named else MissingImage(f"the folder has no image called {name}", unusable=False)
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), absent)  # noqa: PTH113

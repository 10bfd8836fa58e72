"""The images of captions, looked up in a folder by name or by id."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from PIL.Image import Image

from caplens.data.media import ADDRESS, ImageSource, MissingImage, VideoSource
from caplens.data.sample import Sample
from caplens.errors import InputError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
VIDEO_SUFFIXES = (".mp4", ".webm", ".mkv", ".avi", ".mov", ".gif")


def with_images(samples: Iterable[Sample], folder: str | PathLike[str]) -> Iterator[Sample]:
    """Each sample with its image looked up in `folder`: by its `image`, else by its id with a usual suffix."""
    root = os.path.abspath(folder)  # noqa: PTH100
    if not Path(root).is_dir():
        raise InputError(f"{folder}: there is no such folder of images.")
    return (_in_folder(sample, root) for sample in samples)


def _in_folder(sample: Sample, root: str) -> Sample:
    if isinstance(sample.video, str | PathLike):
        sample = replace(sample, video=_video_in(root, str(sample.video)))
    if isinstance(sample.image, bytes | Image) or (sample.video is not None and sample.image is None):
        return sample
    return replace(sample, image=_image_in(root, sample))


def _video_in(root: str, name: str) -> VideoSource:
    """A video or folder of frames of this name, with or without one of the usual suffixes; never from outside the folder."""
    path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118
    if ADDRESS.match(name):
        return name
    if not path.startswith(os.path.join(root, "")):  # noqa: PTH118
        return MissingImage(f"the video {name} is outside the folder of images")
    if os.path.exists(path):  # noqa: PTH110
        return path
    videos = [path + suffix for suffix in VIDEO_SUFFIXES if os.path.isfile(path + suffix)]  # noqa: PTH113
    if len(videos) > 1:
        names = " and ".join(os.path.basename(video) for video in videos)
        raise InputError(f"{root}: the video of {name!r} could be {names}. Remove one, or name it with its suffix.")
    return videos[0] if videos else path


def _image_in(root: str, sample: Sample) -> ImageSource:
    """By its name, else by the id of the caption or of its image; an error if there is an image of either id."""
    if isinstance(sample.image, str | PathLike) and str(sample.image):
        return _named_image(root, str(sample.image))
    by_id = _file_in(root, sample.id)
    by_image_id = None if sample.image_id is None else _file_in(root, sample.image_id)
    if isinstance(by_id, str) and isinstance(by_image_id, str) and by_id != by_image_id:
        raise InputError(
            f"{root}: there is an image of the 'id' {sample.id!r} and one of the 'image_id' {sample.image_id!r}; both could be"
            " meant. Remove or rename the column that is not."
        )
    return by_image_id or by_id or MissingImage(f"the folder has no image called {sample.id}", unusable=False)


def _named_image(root: str, name: str) -> ImageSource:
    return name if ADDRESS.match(name) else _file_in(root, name) or os.path.join(root, name)  # noqa: PTH118


def _file_in(root: str, name: str) -> str | MissingImage | None:
    """The file of this name, or of its name with another of the usual suffixes; never from outside the folder."""
    path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118
    if not path.startswith(os.path.join(root, "")):  # noqa: PTH118
        return MissingImage(f"the image {name} is outside the folder {root}")
    if os.path.isfile(path):  # noqa: PTH113
        return path
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    stems = (path, stem) if suffix.lower() in SUFFIXES else (path,)
    for start in stems:
        images = [start + suffix for suffix in SUFFIXES if os.path.isfile(start + suffix)]  # noqa: PTH113
        if len(images) > 1:
            names = " and ".join(os.path.basename(image) for image in images)
            raise InputError(f"{root}: the image of {name!r} could be {names}. Remove one, or name it with its suffix.")
        if images:
            return images[0]
    return None

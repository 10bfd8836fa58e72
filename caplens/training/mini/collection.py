"""The training data of caplens-mini: photos and captions of Flickr8k in twelve languages, and the text of Multi30k.

Captions of test photos are never used for training, and captions of dev photos only with `all_photos`. Multi30k describes some
photos of Flickr8k; the captions of such a photo are put in one group.
"""

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from caplens.benchmarks.datasets.flickr8k import IMAGE_FOLDERS
from caplens.data.files import Source, open_regular
from caplens.data.languages import base_language
from caplens.data.records import find_file, read_fields
from caplens.embed.images import UnreadableError, opened
from caplens.errors import InputError, reason
from caplens.progress import track

Part = Literal["train", "dev", "test"]
_LAYOUT_HINT = "The layout of the training data is described in docs/mini.md."
_LARGEST_PHOTO = 64 << 20
"""Bytes."""
_DAMAGE_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)
"""What a damaged, encrypted or strange archive raises."""
_MULTI30K_LANGUAGES = ("en", "de", "fr", "cs")


@dataclass(frozen=True)
class Group:
    """The captions of one photo."""

    captions: list[tuple[str, str]]
    """(language, caption)"""
    photo: str | None = None
    """The name of the photo; None where there is only text."""


def read_groups(data: Path, part: Part, *, all_photos: bool = False) -> list[Group]:
    """Read the groups of one part of the data, those with photos first.

    `train` has the training photos, the photos in no split and the text of Multi30k; with `all_photos` also the dev photos.
    """
    flickr = data / "flickr8k"
    splits = {name: _read_names(flickr, name) for name in ("train", "dev", "test")}
    captions = _read_captions(flickr)
    if part != "train":
        return [Group(captions[photo], photo) for photo in sorted(splits[part]) if photo in captions]
    held_out = splits["test"] | (set() if all_photos else splits["dev"])
    by_photo = {photo: captions[photo] for photo in sorted(captions) if photo not in held_out}
    text_only = _add_multi30k(data / "multi30k", by_photo, held_out)
    groups = [Group(_unique(captions), photo) for photo, captions in by_photo.items()]
    groups += [Group(_unique(captions)) for captions in text_only]
    return [group for group in groups if group.captions]


def _add_multi30k(folder: Path, by_photo: Mapping[str, list[tuple[str, str]]], held_out: set[str]) -> list[list[tuple[str, str]]]:
    """Add the captions of Multi30k to `by_photo`; returns the captions of further photos, except those that are held out."""
    photo_of_number = {_flickr_number(photo): photo for photo in by_photo}
    held_out_numbers = {_flickr_number(photo) for photo in held_out}
    text_only: dict[str, list[tuple[str, str]]] = {}
    for lang in _MULTI30K_LANGUAGES:
        path = find_file(folder, [f"{lang}.tsv"], f"the text of Multi30k in {lang}", _LAYOUT_HINT)
        for _, (number, _, caption) in read_fields(path, 3, tabs_in_last=True):
            if number in photo_of_number:
                by_photo[photo_of_number[number]].append((lang, caption))
            elif number not in held_out_numbers:
                text_only.setdefault(number, []).append((lang, caption))
    return list(text_only.values())


def _read_names(flickr: Path, split: str) -> set[str]:
    """The names of the photos of a split."""
    with Source(
        find_file(flickr, [f"{split}.txt", f"Flickr_8k.{split}Images.txt"], f"the list of {split} photos", _LAYOUT_HINT)
    ) as source:
        return {line.strip() for _, line in source.lines() if line.strip()}


def _read_captions(flickr: Path) -> dict[str, list[tuple[str, str]]]:
    """Photo -> captions of all files `captions/LANG.ORIGIN.tsv`, compressed or not."""
    captions: dict[str, list[tuple[str, str]]] = {}
    paths = sorted((flickr / "captions").glob("*.tsv*"))
    if not paths:
        raise InputError(f"{flickr / 'captions'}: captions are missing (LANG.ORIGIN.tsv). {_LAYOUT_HINT}")
    for path in track(paths, "reading captions", len(paths)):
        lang = base_language(path.name.split(".")[0])
        for _, (photo, _, caption) in read_fields(path, 3, tabs_in_last=True):
            captions.setdefault(photo, []).append((lang, caption))
    return captions


def _flickr_number(photo: str) -> str:
    """The number in the name of a Flickr8k photo, which is its name in Multi30k."""
    return photo.partition("_")[0]


def _unique(captions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Captions without duplicates and blank ones."""
    return list(dict.fromkeys((lang, caption) for lang, caption in captions if caption.strip()))


def _photos_in(data: Path) -> Path:
    """The folder or archive of the photos."""
    flickr = data / "flickr8k"
    return next((flickr / name for name in IMAGE_FOLDERS if (flickr / name).is_dir()), flickr / "images.zip")


def photo_versions(data: Path, names: Sequence[str]) -> list[tuple[str, int]]:
    """The name of each photo, and its size in a folder or its checksum in an archive: other photos have others."""
    with _Photos(_photos_in(data)) as photos:
        return [(name, photos.version(name)) for name in names]


def read_photos(data: Path, names: Sequence[str], size: int) -> NDArray[np.uint8]:
    """Read photos from a folder or images.zip, with any suffix, and resize them to squares: (n, 3, size, size)."""
    folder = _photos_in(data)
    pixels = np.empty((len(names), 3, size, size), dtype=np.uint8)

    def resize(row: int, content: bytes) -> None:
        try:
            with opened(content) as photo:
                pixels[row] = np.asarray(photo.resize((size, size), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
        except UnreadableError as error:
            raise InputError(f"{folder}: the photo {names[row]} cannot be used: {error}. Get it again.") from None

    with ThreadPoolExecutor() as pool:
        contents = _read_files(folder, track(names, "reading photos", len(names)))
        for future in [pool.submit(resize, row, content) for row, content in enumerate(contents)]:
            future.result()
    return pixels


def _read_files(source: Path, names: Iterable[str]) -> Iterator[bytes]:
    """The contents of files in a folder or a zip archive."""
    with _Photos(source) as photos:
        yield from map(photos.content, names)


class _Photos:
    """Photos in a folder or a zip archive, by name, else by name with another suffix."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._archive: zipfile.ZipFile | None = None
        if not source.exists():
            raise InputError(f"{source.parent}: photos are missing ({' or '.join(IMAGE_FOLDERS)} or images.zip). {_LAYOUT_HINT}")
        try:
            if source.is_dir():
                files = [path.name for path in source.iterdir()]
            else:
                self._archive = zipfile.ZipFile(source)
                files = self._archive.namelist()
        except _DAMAGE_ERRORS as error:
            raise self._unreadable(error) from None
        self._by_stem: dict[str, list[str]] = {}
        for file in files:
            self._by_stem.setdefault(Path(file).stem, []).append(file)

    def __enter__(self) -> "_Photos":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._archive is not None:
            self._archive.close()

    def version(self, name: str) -> int:
        file = self._find(name)
        return (self._source / file).stat().st_size if self._archive is None else self._archive.getinfo(file).CRC

    def content(self, name: str) -> bytes:
        file = self._find(name)
        try:
            with self._open(file) as stream:
                content = stream.read(_LARGEST_PHOTO + 1)
        except _DAMAGE_ERRORS as error:
            raise self._unreadable(error) from None
        if len(content) > _LARGEST_PHOTO:
            raise InputError(f"{self._source}: {file} is larger than {_LARGEST_PHOTO >> 20} MB, which no photo is.")
        return content

    def _open(self, file: str) -> IO[bytes]:
        return open_regular(self._source / file) if self._archive is None else self._archive.open(file)

    def _find(self, name: str) -> str:
        candidates = self._by_stem.get(Path(name).stem, [])
        exact = [file for file in candidates if Path(file).name == name]
        if len(exact or candidates) > 1:
            raise InputError(f"{self._source}: the photo {name} could be {' or '.join(exact or candidates)}. Remove one of them.")
        if not candidates:
            raise InputError(f"{self._source}: the photo {name} is missing.")
        return (exact or candidates)[0]

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._source}: the photos cannot be read ({reason(error)}). Get them again.")

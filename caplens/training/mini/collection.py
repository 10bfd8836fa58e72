"""The training data of caplens-mini: photos and captions of Flickr8k in twelve languages and of COCO, and the text of Multi30k.

Captions of test photos are never used for training, and captions of dev photos only with `all_photos`. Multi30k describes some
photos of Flickr8k; the captions of such a photo are put in one group. COCO has no official dev and test photos that benchmarks do
not use, so 500 of each are chosen by a hash of their ids, of those with five captions.
"""

import hashlib
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
_PHOTOS_HELD_OUT, _CAPTIONS_HELD_OUT = 500, 5
"""Photos of COCO for dev, and as many for test; captions that each has at least."""
_PHOTOS_IN_MEMORY = 256
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

    `train` has the training photos, the photos in no split and the text of Multi30k; with `all_photos` also the dev photos. The
    groups of `dev` and `test` are those of Flickr8k; `read_coco` has those of COCO.
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
    coco = _coco_parts(data)
    groups += coco["train"] + (coco["dev"] if all_photos else [])
    groups += [Group(_unique(captions)) for captions in text_only]
    return [group for group in groups if group.captions]


def read_coco(data: Path, part: Part) -> list[Group]:
    """Read the groups of COCO, of all files `coco/captions.LANG.tsv`; none if there is no such folder."""
    return _coco_parts(data)[part]


def _coco_parts(data: Path) -> dict[Part, list[Group]]:
    captions = _read_captions(data / "coco", "captions.*.tsv*", 1) if (data / "coco").is_dir() else {}
    complete = [photo for photo in captions if len(captions[photo]) >= _CAPTIONS_HELD_OUT]
    ordered = sorted(complete, key=lambda photo: hashlib.sha256(photo.encode()).hexdigest())
    dev, test = ordered[:_PHOTOS_HELD_OUT], ordered[_PHOTOS_HELD_OUT : 2 * _PHOTOS_HELD_OUT]
    photos: dict[Part, Iterable[str]] = {"train": captions.keys() - {*dev, *test}, "dev": dev, "test": test}
    return {part: [Group(_unique(captions[photo]), photo) for photo in sorted(names)] for part, names in photos.items()}


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


def _read_captions(folder: Path, files: str = "captions/*.tsv*", language: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Photo -> captions of all files, compressed or not, whose names hold the language at that place."""
    captions: dict[str, list[tuple[str, str]]] = {}
    paths = sorted(folder.glob(files))
    if not paths:
        raise InputError(f"{folder}: captions are missing ({files.replace('*', 'LANG', 1).rstrip('*')}). {_LAYOUT_HINT}")
    for path in track(paths, "reading captions", len(paths)):
        lang = base_language(path.name.split(".")[language])
        for _, (photo, _, caption) in read_fields(path, 3, tabs_in_last=True):
            captions.setdefault(photo, []).append((lang, caption))
    return captions


def _flickr_number(photo: str) -> str:
    """The number in the name of a Flickr8k photo, which is its name in Multi30k."""
    return photo.partition("_")[0]


def _unique(captions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Captions without duplicates and blank ones."""
    return list(dict.fromkeys((lang, caption) for lang, caption in captions if caption.strip()))


def photo_versions(data: Path, names: Sequence[str]) -> list[tuple[str, int]]:
    """The name of each photo, and its size in a folder or its checksum in an archive: other photos have others."""
    with _Photos(data) as photos:
        return [(name, photos.version(name)) for name in names]


def read_photos(data: Path, names: Sequence[str], size: int) -> NDArray[np.uint8]:
    """Read photos from folders or archives, with any suffix, and resize them to squares: (n, 3, size, size)."""
    pixels = np.empty((len(names), 3, size, size), dtype=np.uint8)

    def resize(row: int, content: bytes) -> None:
        try:
            with opened(content) as photo:
                pixels[row] = np.asarray(photo.resize((size, size), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
        except UnreadableError as error:
            raise InputError(f"{data}: the photo {names[row]} cannot be used: {error}. Get it again.") from None

    with ThreadPoolExecutor() as pool, _Photos(data) as photos:
        waiting: deque[Future[None]] = deque()
        for row, name in enumerate(track(names, "reading photos", len(names))):
            waiting.append(pool.submit(resize, row, photos.content(name)))
            # Photos that were read and not yet resized are in memory.
            if len(waiting) > _PHOTOS_IN_MEMORY:
                waiting.popleft().result()
        for future in waiting:
            future.result()
    return pixels


class _Photos:
    """The photos of all collections, in folders or zip archives: by name, else by name with another suffix."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._by_stem: dict[str, list[tuple[Path, str]]] = {}
        for source in _photo_sources(data):
            try:
                if source.is_dir():
                    files = [path.name for path in source.iterdir()]
                else:
                    self._archives[source] = zipfile.ZipFile(open_regular(source))
                    files = self._archives[source].namelist()
            except _DAMAGE_ERRORS as error:
                raise _unreadable(source, error) from None
            for file in files:
                self._by_stem.setdefault(Path(file).stem, []).append((source, file))

    def __enter__(self) -> "_Photos":
        return self

    def __exit__(self, *exc: object) -> None:
        for archive in self._archives.values():
            archive.close()

    def version(self, name: str) -> int:
        source, file = self._find(name)
        return self._archives[source].getinfo(file).CRC if source in self._archives else (source / file).stat().st_size

    def content(self, name: str) -> bytes:
        source, file = self._find(name)
        try:
            with self._archives[source].open(file) if source in self._archives else open_regular(source / file) as stream:
                content = stream.read(_LARGEST_PHOTO + 1)
        except _DAMAGE_ERRORS as error:
            raise _unreadable(source, error) from None
        if len(content) > _LARGEST_PHOTO:
            raise InputError(f"{source}: {file} is larger than {_LARGEST_PHOTO >> 20} MB, which no photo is.")
        return content

    def _find(self, name: str) -> tuple[Path, str]:
        candidates = self._by_stem.get(Path(name).stem, [])
        exact = [(source, file) for source, file in candidates if Path(file).name == name]
        if len(exact or candidates) > 1:
            files = " or ".join(f"{source.name}/{file}" for source, file in exact or candidates)
            raise InputError(f"{self._data}: the photo {name} could be {files}. Remove one of them.")
        if not candidates:
            raise InputError(f"{self._data}: the photo {name} is missing.")
        return (exact or candidates)[0]


def _photo_sources(data: Path) -> list[Path]:
    """The folders and archives of photos."""
    flickr, coco = data / "flickr8k", data / "coco"
    sources = [next((flickr / name for name in IMAGE_FOLDERS if (flickr / name).is_dir()), flickr / "images.zip")]
    if not sources[0].exists():
        raise InputError(f"{flickr}: photos are missing ({' or '.join(IMAGE_FOLDERS)} or images.zip). {_LAYOUT_HINT}")
    if coco.is_dir():
        archives = [coco / "images"] if (coco / "images").is_dir() else sorted(coco.glob("images*.zip"))
        if not archives:
            raise InputError(f"{coco}: photos are missing (images, or images*.zip). {_LAYOUT_HINT}")
        sources += archives
    return sources


def _unreadable(source: Path, error: Exception) -> InputError:
    return InputError(f"{source}: the photos cannot be read ({reason(error)}). Get them again.")

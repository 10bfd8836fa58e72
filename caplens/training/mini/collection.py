"""The photos and captions that caplens-mini learns from: Flickr8k in twelve languages, and the text of Multi30k.

Nothing of the Flickr8k test photos is ever read for training, and nothing of the dev photos either unless that is asked for.
Multi30k describes some of the same photos; captions of one photo are brought together under it.
"""

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from caplens.benchmarks.datasets.flickr8k import IMAGE_FOLDERS
from caplens.data.files import Source
from caplens.data.languages import base_language
from caplens.data.records import find_file, read_fields
from caplens.embed.images import UnreadableError, decode
from caplens.errors import InputError
from caplens.progress import track

Part = Literal["train", "dev", "test"]
_WHERE = "The layout of the training data is described in docs/mini.md."
_MULTI30K = ("en", "de", "fr", "cs")


@dataclass(frozen=True)
class Group:
    """What is said about one photo: (language, caption). `photo` is its name if the photo is at hand."""

    captions: list[tuple[str, str]]
    photo: str | None = None


def read_groups(data: Path, part: Part, *, all_photos: bool = False) -> list[Group]:
    """Groups of one part of the data, those with photos first.

    `train` is the training photos, the photos in no split and the text of Multi30k; with `all_photos` the dev photos too.
    """
    flickr = data / "flickr8k"
    splits = {name: _read_names(flickr, name) for name in ("train", "dev", "test")}
    captions = _read_captions(flickr)
    held_out = splits["test"] | (set() if all_photos else splits["dev"])
    chosen = {photo for photo in captions if photo not in held_out} if part == "train" else splits[part]
    groups = {photo: list(captions[photo]) for photo in sorted(chosen) if photo in captions}
    if part != "train":
        return [Group(found, photo) for photo, found in groups.items()]
    by_number = {_number(photo): photo for photo in groups}
    left_out = {_number(photo) for photo in held_out}
    text_only: dict[str, list[tuple[str, str]]] = {}
    for lang in _MULTI30K:
        path = find_file(data / "multi30k", [f"{lang}.tsv"], f"the text of Multi30k in {lang}", _WHERE)
        for _, (number, _, caption) in read_fields(path, 3, tabs_in_last=True):
            if number in by_number:
                groups[by_number[number]].append((lang, caption))
            elif number not in left_out:
                text_only.setdefault(number, []).append((lang, caption))
    found = [Group(_unique(some), photo) for photo, some in groups.items()] + [
        Group(_unique(some)) for some in text_only.values()
    ]
    return [group for group in found if group.captions]


def _read_names(flickr: Path, split: str) -> set[str]:
    with Source(
        find_file(flickr, [f"{split}.txt", f"Flickr_8k.{split}Images.txt"], f"the list of {split} photos", _WHERE)
    ) as source:
        return {line.strip() for _, line in source.lines() if line.strip()}


def _read_captions(flickr: Path) -> dict[str, list[tuple[str, str]]]:
    """Photo -> captions, of every file `captions/LANG.ORIGIN.tsv` (packed or not)."""
    found: dict[str, list[tuple[str, str]]] = {}
    paths = sorted((flickr / "captions").glob("*.tsv*"))
    if not paths:
        raise InputError(f"{flickr / 'captions'}: there are no captions (LANG.ORIGIN.tsv). {_WHERE}")
    for path in track(paths, "reading captions", len(paths)):
        lang = base_language(path.name.split(".")[0])
        for _, (photo, _, caption) in read_fields(path, 3, tabs_in_last=True):
            found.setdefault(photo, []).append((lang, caption))
    return found


def _number(photo: str) -> str:
    """The Flickr number, which Flickr30k names photos by."""
    return photo.partition("_")[0]


def _unique(captions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each caption once; one without words is none."""
    return list(dict.fromkeys((lang, caption) for lang, caption in captions if caption.strip()))


def read_photos(data: Path, names: Sequence[str], size: int) -> NDArray[np.uint8]:
    """Photos squashed to `size` x `size`: (n, 3, size, size). They lie in a folder or in images.zip, with any suffix."""
    flickr = data / "flickr8k"
    folder = next((flickr / name for name in IMAGE_FOLDERS if (flickr / name).is_dir()), flickr / "images.zip")
    made = np.empty((len(names), 3, size, size), dtype=np.uint8)

    def put(place: int, content: bytes) -> None:
        try:
            seen = decode(content, f"the photo {names[place]} in {folder}")
        except UnreadableError as error:
            raise InputError(f"{error}. Get it again.") from None
        made[place] = np.asarray(seen.resize((size, size), Image.Resampling.BICUBIC)).transpose(2, 0, 1)

    with ThreadPoolExecutor() as pool:
        contents = _contents(folder, track(names, "reading photos", len(names)))
        for done in [pool.submit(put, place, content) for place, content in enumerate(contents)]:
            done.result()
    return made


def _contents(place: Path, names: Iterable[str]) -> Iterator[bytes]:
    """What the files of these names hold, whatever their suffix, in a folder or in an archive."""
    if not place.exists():
        raise InputError(f"{place.parent}: there are no photos ({' or '.join(IMAGE_FOLDERS)} or images.zip). {_WHERE}")
    try:
        if place.is_dir():
            inside = {path.stem: path for path in place.iterdir()}
            yield from (inside[_known(name, inside, place)].read_bytes() for name in names)
        else:
            with zipfile.ZipFile(place) as archive:
                packed = {Path(name).stem: name for name in archive.namelist()}
                yield from (archive.read(packed[_known(name, packed, place)]) for name in names)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{place}: the photos cannot be read ({error}). Get them again.") from None


def _known(name: str, inside: Mapping[str, object], place: Path) -> str:
    """The name without its suffix, if it is there."""
    if Path(name).stem not in inside:
        raise InputError(f"{place}: the photo {name} is not there.")
    return Path(name).stem

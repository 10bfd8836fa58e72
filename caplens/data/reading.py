"""Reading samples from any file: the format is told by what the file holds, not by its name."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from PIL.Image import Image

from caplens.data import coco, dictionary, jsonl, parquet, table
from caplens.data.files import Place, Source, on_disk
from caplens.data.rows import Row, sample_from_row
from caplens.data.sample import NoPicture, Picture, Sample
from caplens.errors import InputError
from caplens.progress import track

_PEEK = 1 << 20
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class SampleFile:
    """The samples of a file, read anew each time one iterates over it. `-` is standard input.

    JSONL, CSV, TSV and Parquet are read as a stream; a JSON document has to be read whole. An id may stand once for
    each system and language.
    """

    def __init__(self, path: str | PathLike[str], *, caption_required: bool = True) -> None:
        self.path = on_disk(path)
        self.format, self._document = _inspect(self.path)
        self._caption_required = caption_required

    def __iter__(self) -> Iterator[Sample]:
        seen: dict[object, int | None] = {}
        for place, sample in self.placed():
            key = (sample.id, sample.system, sample.lang) if sample.system or sample.lang else sample.id
            first = seen.setdefault(key, place.number)
            if first != place.number:
                raise InputError(
                    f"{place}: the id {sample.id!r} was already used on {place.unit} {first}. Give each caption its own id."
                )
            yield sample

    def placed(self) -> Iterator[tuple[Place, Sample]]:
        """Each sample with its place in the file, whether or not its id was there before."""
        place = None
        with Source(self.path) as source:
            for place, row in track(self._rows(source), f"reading {self.path.name}", source.size, source.position):
                yield place, sample_from_row(row, place, caption_required=self._caption_required)
        if place is None:
            raise InputError(f"{self.path}: there are no samples in the file.")

    def _rows(self, source: Source) -> Iterator[tuple[Place, Row]]:
        match self.format:
            case "jsonl":
                return jsonl.read_rows(source)
            case "csv" | "tsv":
                return table.read_rows(source)
            case "parquet":
                return parquet.read_rows(self.path)
            case "coco-results" | "json":
                return coco.result_rows(self._document, self.path)
            case "coco-annotations" if self._caption_required:
                raise InputError(f"{self.path}: this holds references and no captions. Give this file with --references instead.")
            case "coco-annotations":
                return coco.annotation_rows(self._document, self.path)
            case _:
                return dictionary.read_rows(self._document, self.path, captions=self._caption_required)


def samples_by_system(paths: Sequence[Path]) -> dict[str, Iterable[Sample]]:
    """A file for each system, called after it, or one file whose rows name their system."""
    if len(paths) > 1:
        names = _short_names(paths)
        return {name: SampleFile(path) for name, path in zip(names, paths, strict=True)}
    by_system: dict[str, list[Sample]] = {}
    for sample in SampleFile(paths[0]):
        if sample.system is None:
            raise InputError(
                f"{paths[0]}: the sample {sample.id!r} names no 'system'. Give a file for each system, or name it in each row."
            )
        by_system.setdefault(sample.system, []).append(replace(sample, system=None))
    if len(by_system) < 2:
        raise InputError(f"{paths[0]}: all rows are of one system; a comparison needs two or more.")
    return dict(by_system)


def _short_names(paths: Sequence[Path]) -> list[str]:
    """File names without suffix where these differ, else the paths."""
    stems = [path.name.split(".")[0] for path in paths]
    if len(set(stems)) == len(paths):
        return stems
    if len(set(paths)) < len(paths):
        raise InputError("the same file is named twice; each system needs its own file.")
    return [str(path) for path in paths]


def _inspect(path: Path) -> tuple[str, Any]:
    """The format (jsonl, csv, tsv, parquet, json, coco-results, coco-annotations or dictionary), and the whole document where
    the format cannot be read as a stream.
    """
    with Source(path) as source:
        head = source.read(_PEEK)
        while b"\n" not in head and (more := source.read(_PEEK)):
            head += more
        if not head.strip():
            raise InputError(f"{path}: the file is empty.")
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path}: this is UTF-16. Convert it, e.g. with: iconv -f utf-16 -t utf-8 {path.name}")
        if head.startswith(b"PAR1"):
            if source.packed:
                raise InputError(f"{path}: a packed Parquet file cannot be read. Unpack it first.")
            return "parquet", None
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] not in (b"{", b"["):
            return _detect_table(path, start), None
        if start[:1] == b"{" and _is_jsonl(start):
            return "jsonl", None
    with Source(path) as source:
        document = read_document(source)
    if isinstance(document, list):
        entry = document[0] if document else None
        return "coco-results" if isinstance(entry, dict) and "image_id" in entry else "json", document
    return "coco-annotations" if "annotations" in document else "dictionary", document


def _detect_table(path: Path, start: bytes) -> str:
    header = start.split(b"\n", 1)[0].decode("utf-8", errors="replace").rstrip("\r")
    delimiter = table.delimiter_of(header)
    if delimiter is None:
        raise InputError(
            f"{path}, line 1: the format is not known. It should be JSONL, JSON (COCO or {{id: caption}}), Parquet, or CSV/TSV"
            " whose first line names the columns, among them 'id' and 'caption'."
        )
    return "tsv" if delimiter == "\t" else "csv"


def _is_jsonl(start: bytes) -> bool:
    """An object a line, unlike one document: the first line ends its object, and is a sample or has lines behind it."""
    line, _, rest = start.partition(b"\n")
    try:
        first = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        # A broken first line of JSONL should be reported as such: an object also begins on the next line.
        return rest.lstrip(b"\r\n").startswith(b"{")
    return bool(rest.strip()) or (isinstance(first, dict) and bool({"id", "image_id", "caption"} & first.keys()))


def read_document(source: Source) -> Any:
    """A whole JSON document."""
    text = source.text()
    try:
        document = json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, source.path), strict=False)
        jsonl.check_characters(text, document, Place(source.path))
        return document
    except json.JSONDecodeError as error:
        raise jsonl.broken_json(Place(source.path, 1), error) from None
    except (RecursionError, ValueError) as error:
        raise jsonl.unreadable_json(Place(source.path), error) from None


def _without_repeats(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{path}: the key {repeated!r} stands there twice in one object. Give each caption its own id.")
    return made


def with_images(samples: Iterable[Sample], folder: str | PathLike[str]) -> Iterator[Sample]:
    """Each sample with its image looked up in `folder`: by its `image`, else by its id with a usual suffix."""
    root = os.path.abspath(folder)  # noqa: PTH100
    if not Path(root).is_dir():
        raise InputError(f"{folder}: there is no such folder of images.")
    return (
        sample if isinstance(sample.image, bytes | Image) else replace(sample, image=_image_in(root, sample))
        for sample in samples
    )


def _image_in(root: str, sample: Sample) -> Picture:
    """By its name, or by its name with another of the usual suffixes; never from outside the folder."""
    name = str(sample.image) if isinstance(sample.image, str | PathLike) and str(sample.image) else sample.id
    if "://" in name:
        return name
    path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118
    if not path.startswith(os.path.join(root, "")):  # noqa: PTH118
        return NoPicture(f"the image {name} is outside the folder {root}")
    if os.path.isfile(path):  # noqa: PTH113
        return path
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    stems = (path, stem) if suffix.lower() in _IMAGE_SUFFIXES else (path,)
    candidates = (stem + suffix for stem in stems for suffix in _IMAGE_SUFFIXES)
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), path)  # noqa: PTH113

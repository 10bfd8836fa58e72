"""Reading samples from any file: the format is detected from its content, not from its name."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from caplens.data.columns import ColumnChoice, Columns
from caplens.data.encodings import as_utf8
from caplens.data.files import Place, Source, on_disk
from caplens.data.formats import (
    coco,
    crossmodal3600,
    delimited,
    dictionary,
    jsonl,
    parquet,
    photo_folder,
    spreadsheet,
    webdataset,
)
from caplens.data.formats.detection import detect_format
from caplens.data.rows import Row, sample_from_row
from caplens.data.sample import Sample
from caplens.errors import InputError, option
from caplens.progress import track
from caplens.terminal import visible


class SampleFile:
    """The samples of a file, read again each time one iterates over it.

    JSONL, CSV, TSV, Excel, Parquet and tars are read as a stream; a JSON document is read whole. An id may appear once for each
    system and language.

    Parameters
    ----------
    path
        The file, or a folder of photos or of files; `-` is standard input.
    columns
        Field -> the column that holds it, where a table calls them otherwise: `{"caption": "ALT"}`.
    caption_required
        Whether every row needs a caption; a file of references has none.
    mark_repeats
        Whether a repeated id makes its row `invalid` instead of raising an error.
    numbered
        Whether several rows about one image without ids are several captions, with a number each; references are not.

    Raises
    ------
    InputError
        If the file cannot be read, or while iterating if a row is broken.

    Examples
    --------
    >>> for sample in SampleFile("captions.jsonl"):  # doctest: +SKIP
    ...     print(sample.id, sample.caption)
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        columns: ColumnChoice | None = None,
        caption_required: bool = True,
        mark_repeats: bool = False,
        numbered: bool = True,
    ) -> None:
        self.path = on_disk(path)
        if not self.path.is_dir() and not _is_json(self.path):
            self.path = as_utf8(self.path)
        self.format, self._document = detect_format(self.path, columns)
        self.columns = dict(columns or {})
        self._caption_required, self._mark_repeats, self._numbered = caption_required, mark_repeats, numbered

    def __iter__(self) -> Iterator[Sample]:
        for place, sample in marked_repeats(self.placed()):
            if sample.invalid and not self._mark_repeats:
                raise InputError(f"{place}: {sample.invalid}. Give each caption its own id.")
            yield sample

    def placed(self) -> Iterator[tuple[Place, Sample]]:
        """Each sample with its place in the file, whether or not its id appeared before."""
        place = None
        for place, row in self._named_rows(Columns(self.columns, numbered=self._numbered)):
            yield place, sample_from_row(row, place, caption_required=self._caption_required)
        if place is None:
            raise InputError(f"{self.path}: there are no samples in the file.")

    def _named_rows(self, columns: Columns) -> Iterator[tuple[Place, Row]]:
        """Rows whose columns have the names of fields."""
        if self.format == "folder":
            yield from self._folder_rows(columns)
        else:
            yield from columns.rows(self._read_rows(columns), by_row=self.format in _NAMED_IN_ROWS)

    def _read_rows(self, columns: Columns) -> Iterator[tuple[Place, Row]]:
        with Source(self.path) as source:
            yield from track(self._rows(source, columns), f"reading {self.path.name}", source.size, source.position)

    def _folder_rows(self, columns: Columns) -> Iterator[tuple[Place, Row]]:
        """Of a folder: its table of captions, its parts one after the other, or its photos."""
        table, parts = photo_folder.table_of(self.path), photo_folder.parts_of(self.path)
        if table is None and not parts:
            yield from columns.rows(photo_folder.photo_rows(self.path), by_row=False)
            return
        for path in parts if table is None else [table]:
            part = SampleFile(path, columns=self.columns, caption_required=self._caption_required)
            for place, row in part._named_rows(columns.of_part()):
                image = row.get("image")
                named = table is not None and isinstance(image, str) and image
                yield place, {**row, "image": photo_folder.path_inside(self.path, str(image), place)} if named else row

    def _rows(self, source: Source, columns: Columns) -> Iterator[tuple[Place, Row]]:
        match self.format:
            case "jsonl":
                return jsonl.read_rows(source)
            case "crossmodal-3600":
                read_rows = crossmodal3600.caption_rows if self._caption_required else crossmodal3600.reference_rows
                return read_rows(source)
            case "csv" | "tsv":
                return delimited.read_rows(source, columns)
            case "parquet":
                return parquet.read_rows(self.path, columns)
            case "arrow":
                return parquet.read_arrow_rows(self.path, columns)
            case "xlsx":
                return spreadsheet.read_rows(self.path, columns)
            case "webdataset":
                return webdataset.read_rows(source)
            case "coco-results" | "json":
                return coco.result_rows(self._document, self.path)
            case "coco-annotations" if self._caption_required:
                raise InputError(f"{self.path}: this file holds references, not captions. Pass it with {option('references')}.")
            case "coco-annotations":
                return coco.annotation_rows(self._document, self.path)
            case _:
                return dictionary.read_rows(self._document, self.path, captions=self._caption_required)


_NAMED_IN_ROWS = ("jsonl", "json", "coco-results", "webdataset")
"""Formats whose rows name their columns one by one."""


def _is_json(path: Path) -> bool:
    """Whether a file is JSON, which is always UTF-8, or begins like one."""
    with Source(path) as source:
        return source.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def marked_repeats(placed: Iterable[tuple[Place, Sample]]) -> Iterator[tuple[Place, Sample]]:
    """The samples, those marked as invalid whose id appeared before for the same system and language."""
    files: dict[Path, int] = {}
    path, file = None, 0
    seen: dict[object, tuple[int, int] | int] = {}
    for place, sample in placed:
        lang = None if sample.lang is None else sample.lang.lower().replace("_", "-")
        key = (sample.id, sample.system, lang) if sample.system or lang else sample.id
        # In a data set of several parts, numbers begin again in each.
        if place.file is not path:
            path, file = place.file, files.setdefault(place.file, len(files))
        number = place.number or 0
        here = (file, number) if file else number
        first = seen.setdefault(key, here)
        if first != here:
            before = first if isinstance(first, tuple) else (0, first)
            earlier = Place(list(files)[before[0]], before[1] or None, place.unit)
            where = f"{earlier} and {place}" if before[0] != file else f"{place.unit} {before[1]} and {place.unit} {number}"
            yield place, replace(sample, invalid=f"the id {sample.id!r} appears twice, on {where}")
        else:
            yield place, sample


def samples_by_system(
    paths: Sequence[Path], given: Sequence[str | None] | None = None, *, single: bool = False
) -> dict[str, Iterable[Sample]]:
    """One file per system, or one file whose rows name their system; with `single`, one system is enough.

    A system is named as given, else after its file.
    """
    given = given or [None] * len(paths)
    if len(paths) > 1 or (single and all(sample.system is None for sample in SampleFile(paths[0], mark_repeats=True))):
        names = [name or short for name, short in zip(given, _short_names(paths), strict=True)]
        if len(set(names)) < len(names):
            raise InputError("two systems have the same name; give each its own (NAME=FILE).")
        return {name: SampleFile(path, mark_repeats=True) for name, path in zip(names, paths, strict=True)}
    by_system: dict[str, list[Sample]] = {}
    for sample in SampleFile(paths[0], mark_repeats=True):
        if sample.system is None:
            raise InputError(
                f"{paths[0]}: the sample {sample.id!r} has no 'system'. Pass a file for each of two or more systems, or name the"
                " system in each row."
            )
        by_system.setdefault(sample.system, []).append(replace(sample, system=None))
    if len(by_system) < 2 and not single:
        raise InputError(f"{paths[0]}: all rows are of one system; a comparison needs at least two.")
    return dict(by_system)


def _short_names(paths: Sequence[Path]) -> list[str]:
    """File names without suffix where these differ, else the paths."""
    stems = [visible(path.name.split(".")[0]) for path in paths]
    if len(set(stems)) == len(paths):
        return stems
    if len(set(paths)) < len(paths):
        raise InputError("the same file is named twice; each system needs its own file.")
    return [visible(str(path)) for path in paths]

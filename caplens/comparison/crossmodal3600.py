"""Crossmodal-3600: 3,600 images with human captions in 36 languages (Thapliyal et al. 2022), used as references.

`captions.jsonl` has one line per image: its key, and its captions by language.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from caplens.data.languages import base_language
from caplens.data.records import find_file, read_records, texts
from caplens.data.references import References
from caplens.errors import InputError
from caplens.results.table import Cell, Table

NAME = "crossmodal-3600"
WHERE = "captions.jsonl is in captions.zip of the Crossmodal-3600 release (google.github.io/crossmodal-3600)."
_NOT_A_LANGUAGE = ("image/key", "image/locale")


class Statistics(NamedTuple):
    """A row of table 1 of the paper: captions, images with one, two and more of them, mean words and characters per caption."""

    lang: str
    captions: int
    once: int
    twice: int
    more: int
    words: float
    characters: float


def read_captions(data: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (image, language code of the release, captions)."""
    path = find_file(data, ["captions.jsonl"], "the captions file", WHERE)
    place, seen = None, set()
    for place, record in read_records(path):
        image = record.get("image/key")
        if not isinstance(image, str):
            raise InputError(f"{place}: there is no 'image/key'; this is not a line of Crossmodal-3600.")
        if image in seen:
            raise InputError(f"{place}: the image {image} was there before. Remove one of the lines.")
        seen.add(image)
        for lang, entry in record.items():
            if lang not in _NOT_A_LANGUAGE:
                if not isinstance(entry, dict) or "caption" not in entry:
                    raise InputError(f"{place}: the language {lang!r} has no 'caption'.")
                yield image, lang, texts(entry["caption"], place)
    if place is None:
        raise InputError(f"{path}: there are no captions in the file.")


def references(data: Path) -> References:
    """The captions as references, by image and language."""
    by_image = References(str(data))
    for image, lang, captions in read_captions(data):
        by_image.add(image, base_language(lang), captions, image=f"{image}.jpg")
    return by_image


def statistics(data: Path) -> list[Statistics]:
    """Count what table 1 of the paper counts. Words are split at spaces, which means little in Chinese, Japanese and Thai."""
    by_language: dict[str, list[tuple[str, ...]]] = {}
    for _, lang, image_captions in read_captions(data):
        by_language.setdefault(lang, []).append(image_captions)
    rows = []
    for lang, images in sorted(by_language.items()):
        captions = [caption for image_captions in images for caption in image_captions]
        replication = Counter(min(3, len(image_captions)) for image_captions in images)
        words, characters = (sum(map(count, captions)) / max(1, len(captions)) for count in (lambda text: len(text.split()), len))
        rows.append(Statistics(lang, len(captions), replication[1], replication[2], replication[3], words, characters))
    return rows


def published_statistics() -> dict[str, Statistics]:
    """Table 1 of the paper, by its language codes."""
    lines = files("caplens.comparison").joinpath("crossmodal3600.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return {lang: Statistics(lang, *map(int, counts[:4]), *map(float, counts[4:])) for lang, *counts in rows}


def statistics_table(statistics_: Sequence[Statistics]) -> Table:
    """The statistics as a table, with those of the paper in brackets where they differ."""
    published = published_statistics()
    rows: list[list[Cell]] = []
    for row in statistics_:
        paper = published.get(row.lang)
        cells: list[Cell] = [row.lang]
        for column, value in enumerate(row[1:], 1):
            shown = f"{value:.1f}" if isinstance(value, float) else f"{value:,}"
            expected = None if paper is None else paper[column]
            same = expected is None or round(value, 1) == expected
            cells.append(shown if same else f"{shown} ({expected:,})")
        rows.append(cells)
    notes = [
        f"{sum(row.captions for row in statistics_):,} captions. In brackets: table 1 of Thapliyal et al. 2022, where it differs."
    ]
    columns = ["lang", "captions", "images with 1", "with 2", "with 3+", "words", "characters"]
    return Table(columns, rows, title=NAME, notes=notes)

"""The two files of the COCO caption evaluation: a list of results, and annotations with the reference captions."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from caplens.data.files import Place
from caplens.data.formats.json_document import to_json
from caplens.data.rows import Row, row_from_sample
from caplens.data.sample import IMAGE_ID, Sample
from caplens.errors import InputError

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


def result_rows(document: list[Any], path: Path) -> Iterator[tuple[Place, Row]]:
    """Rows of a results file, or of any JSON list of objects."""
    for number, entry in enumerate(document, 1):
        place = Place(path, number, "entry")
        if not isinstance(entry, dict):
            raise InputError(f'{place}: each entry must be an object such as {{"image_id": 1, "caption": "a dog"}}.')
        yield place, dict(entry)


def annotation_rows(document: dict[str, Any], path: Path) -> Iterator[tuple[Place, Row]]:
    """One row per image, with its captions as references and its file name as image."""
    annotations, images = document["annotations"], document.get("images", [])
    if not isinstance(annotations, list) or not isinstance(images, list):
        raise InputError(f"{path}: 'annotations' and 'images' must be lists, as in captions_val2014.json.")
    names = _file_names(images, path)
    references: dict[tuple[str, str | None], list[str]] = {}
    for number, annotation in enumerate(annotations, 1):
        place = Place(path, number, "annotation")
        if (
            not isinstance(annotation, dict)
            or not _is_id(annotation.get("image_id"))
            or not isinstance(annotation.get("caption"), str)
        ):
            raise InputError(f"{place}: each annotation needs an 'image_id' (number or text) and a 'caption' (text).")
        lang = annotation.get("lang") if isinstance(annotation.get("lang"), str) else None
        references.setdefault((str(annotation["image_id"]), lang), []).append(annotation["caption"])
    for number, ((image_id, lang), captions) in enumerate(references.items(), 1):
        row: Row = {"id": image_id, "references": captions, **({} if lang is None else {"lang": lang})}
        if names.get(image_id):
            row["image"] = names[image_id]
        yield Place(path, number, "image"), row


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _file_names(images: list[Any], path: Path) -> dict[str, Any]:
    """Image id -> file name. An id is text: 1 and "1" are the same."""
    names: dict[str, Any] = {}
    for number, image in enumerate(images, 1):
        if isinstance(image, dict) and _is_id(image.get("id")):
            name = image.get("file_name")
            if names.setdefault(str(image["id"]), name) != name:
                raise InputError(f"{Place(path, number, 'image')}: the id {image['id']!r} has another file name before.")
    return names


def write_results(samples: Iterable[Sample], path: Path) -> None:
    """A results file. Fields that COCO does not have keep their own names."""
    entries = []
    for sample in samples:
        row = row_from_sample(sample)
        row.pop("references", None)
        # A caption with an id of its own beside that of its image keeps both.
        own = {"id": row.pop("id")}
        entries.append({"image_id": image_id(sample.id), **row} if IMAGE_ID not in row else {**own, **row})
    _dump(entries, path)


def write_annotations(samples: Iterable[Sample], path: Path) -> None:
    images: list[Row] = []
    annotations: list[Row] = []
    for sample in samples:
        file_name = row_from_sample(sample).get("image")
        images.append({"id": image_id(sample.id), **({"file_name": file_name} if file_name else {})})
        for caption in sample.references:
            annotations.append({"id": len(annotations), "image_id": image_id(sample.id), "caption": caption})
    _dump({"images": images, "annotations": annotations}, path)


def image_id(identifier: str) -> int | str:
    """COCO's ids are whole numbers; another id stays text."""
    return int(identifier) if _NUMBER.fullmatch(identifier) else identifier


def _dump(document: Any, path: Path) -> None:
    path.write_text(to_json(document) + "\n", encoding="utf-8")

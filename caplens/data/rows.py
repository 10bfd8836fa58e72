"""From a row (a mapping of names to values) to a `Sample` and back, with every complaint about a value made here."""

import json
import sys
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from caplens.data.files import Place
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError

Row = dict[str, Any]
FIELDS = ("id", "image", "video", "caption", "references", "lang", "system", "ratings")


def sample_from_row(row: Row, place: Place, *, caption_required: bool = True) -> Sample:
    """Check `row` and make it a sample. Names that `Sample` does not know go to `meta`."""
    identifier = row.pop("id", None)
    if identifier is None:
        identifier = row.pop("image_id", None)
    if identifier is None:
        raise _missing("id", row, place)
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        raise InputError(f"{place}: 'id' must be text or a whole number, not {_shown(identifier)}.")

    if "caption" not in row and caption_required:
        raise _missing("caption", row, place)
    caption = row.pop("caption", None)
    if caption is not None and not isinstance(caption, str):
        raise InputError(f"{place}: 'caption' must be text, not {_shown(caption)}.")

    meta = row.pop("meta", None) or {}
    if not isinstance(meta, dict):
        raise InputError(f"{place}: 'meta' must be an object, not {_shown(meta)}.")
    references = _references(row.pop("references", None), place)
    image, video, lang, system = (_optional_text(row, name, place) for name in ("image", "video", "lang", "system"))
    ratings = _ratings(row.pop("ratings", None), place)
    twice = row.keys() & meta.keys()
    if twice:
        raise InputError(f"{place}: {min(twice)!r} stands both in the row and in its 'meta'. Take one out.")
    return Sample(
        id=str(identifier),
        caption="" if caption is None and caption_required else caption,
        references=references,
        image=image,
        video=video,
        lang=_language(lang, place),
        system=system,
        ratings=ratings,
        meta={**row, **meta} if row or meta else {},
    )


def row_from_sample(sample: Sample) -> Row:
    """The row that `sample_from_row` turns back into `sample`; empty fields are left out."""
    for name in ("image", "video"):
        value = getattr(sample, name)
        if value is not None and not isinstance(value, str | PathLike):
            raise InputError(f"sample {sample.id!r}: its {name} is in memory, not in a file, so it cannot be written.")
    row: Row = {
        "id": sample.id,
        "image": None if sample.image is None else fspath(sample.image),  # type: ignore[arg-type]
        "video": None if sample.video is None else fspath(sample.video),
        "caption": sample.caption,
        "references": list(sample.references),
        "lang": sample.lang,
        "system": sample.system,
        "ratings": list(sample.ratings),
    }
    row = {name: value for name, value in row.items() if name == "caption" or (value is not None and value != [])}
    clash = set(sample.meta) & {*FIELDS, "image_id", "meta"}
    return {**row, "meta": dict(sample.meta)} if clash else {**row, **sample.meta}


def row_from_cells(cells: dict[str, str], place: Place) -> Row:
    """A row of a table of text: lists, ratings and meta are JSON inside their cell; an empty cell says nothing."""
    row: Row = {"caption": None} if "caption" in cells else {}
    for name, cell in cells.items():
        if cell:
            row[name] = from_cell(name, cell, place)
    return row


def from_cell(name: str, cell: str, place: Place) -> Any:
    """What a cell of a table says: one reference may be plain text, a list must be JSON."""
    if name in ("ratings", "meta") or (name == "references" and cell.startswith("[")):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            example = {"references": '["a dog", "the dog"]', "ratings": "[4, 3.5]", "meta": '{"source": "web"}'}[name]
            raise InputError(f"{place}: '{name}' is not JSON: {_shown(cell)}. Write it like {example}.") from None
    return cell


def cells_from_sample(sample: Sample) -> dict[str, str]:
    row = row_from_sample(replace(sample, meta={}))
    cells = {
        name: (value or "") if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
        for name, value in row.items()
    }
    if sample.meta:
        cells["meta"] = json.dumps(sample.meta, ensure_ascii=False)
    return cells


def _references(value: Any, place: Place) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        for entry in value:
            if not isinstance(entry, str):
                raise InputError(f"{place}: every entry of 'references' must be text, not {_shown(entry)}.")
        return tuple(value)
    raise InputError(f"{place}: 'references' must be a list of texts, not {_shown(value)}.")


def _ratings(value: Any, place: Place) -> tuple[float, ...]:
    if value is None:
        return ()
    ratings = value if isinstance(value, list) else [value]
    for rating in ratings:
        if isinstance(rating, bool) or not isinstance(rating, int | float) or not abs(rating) <= sys.float_info.max:
            raise InputError(f"{place}: 'ratings' must be numbers, not {_shown(rating)}.")
    return tuple(ratings)


def _optional_text(row: Row, name: str, place: Place) -> str | None:
    value = row.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{place}: '{name}' must be text, not {_shown(value)}.")
    return value


def _language(tag: str | None, place: Place) -> str | None:
    if tag is not None:
        try:
            base_language(tag)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    return tag


def _missing(name: str, row: Row, place: Place) -> InputError:
    found = ", ".join(repr(key) for key in list(row)[:8]) or "nothing"
    hint = " A file of references goes with --references." if name == "caption" and "references" in row else ""
    return InputError(f"{place}: there is no '{name}' (found: {found}). Every row needs 'id' and 'caption'.{hint}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

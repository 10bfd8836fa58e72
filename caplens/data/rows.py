"""From a row (a mapping of names to values) to a `Sample` and back. Every value is checked here."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from caplens.data.aliases import field_meant_by
from caplens.data.files import Place
from caplens.data.formats.json_document import finite_number, parse_json, to_json
from caplens.data.languages import base_language
from caplens.data.media import ImageSource, VideoSource
from caplens.data.sample import IMAGE_ID, Rating, Sample
from caplens.errors import InputError, option

Row = dict[str, Any]
FIELDS = ("id", "image", "video", "caption", "references", "source", "lang", "system", "ratings")
_KNOWN = frozenset((*FIELDS, IMAGE_ID, "meta"))
_MOST_NESTED = 50


def canonical_name(name: str) -> str:
    """Column names that mean something, in lower case and without blanks around them."""
    folded = name.strip().lower()
    return folded if folded in _KNOWN else name


def sample_from_row(row: Row, place: Place, *, caption_required: bool = True) -> Sample:
    """Check `row` and make it a sample. Columns that `Sample` does not know go to `meta`."""
    _check_nesting(row, place)
    row = canonical_row(row, place)
    identifier = _identifier(row, place)
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
    # A column of this name that holds no text is the file's own, and not the text that a caption translates.
    source = row.pop("source") if isinstance(row.get("source"), str) else None
    repeated = row.keys() & meta.keys()
    if repeated:
        raise InputError(f"{place}: {min(repeated)!r} is both a column and a key of 'meta'. Remove one of them.")
    return Sample(
        id=identifier,
        caption="" if caption is None and caption_required else caption,
        references=references,
        image=image,
        video=video,
        lang=_language(lang, place),
        system=system,
        ratings=ratings,
        meta={**row, **meta} if row or meta else {},
        source=source,
    )


def canonical_row(row: Row, place: Place) -> Row:
    """The row with canonical names, and a whole number as `image_id`: a column of numbers with gaps holds floats."""
    for name in [name for name in row if name not in _KNOWN]:
        field = canonical_name(name)
        if field != name:
            if field in row:
                raise InputError(f"{place}: the columns {name!r} and {field!r} mean the same. Rename one of them.")
            row[field] = row.pop(name)
    image_id = row.get(IMAGE_ID)
    if isinstance(image_id, float):
        if image_id != image_id:
            del row[IMAGE_ID]
        elif image_id.is_integer():
            row[IMAGE_ID] = int(image_id)
        else:
            raise InputError(f"{place}: '{IMAGE_ID}' must be text or a whole number, not {_shown(image_id)}.")
    return row


def _check_nesting(row: Row, place: Place) -> None:
    """Python writes and shows values by recursion, so what is nested very deeply cannot be used."""
    level: list[Any] = [value for value in row.values() if isinstance(value, dict | list)]
    for _ in range(_MOST_NESTED):
        if not level:
            return
        inner = [entry.values() if isinstance(entry, dict) else entry for entry in level]
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    raise InputError(f"{place}: lists and objects are nested more than {_MOST_NESTED} deep, which no column needs.")


def _identifier(row: Row, place: Place) -> str:
    identifier = row.pop("id", None)
    if identifier is None:
        identifier = row.pop(IMAGE_ID, None)
    if identifier is None:
        raise _missing("id", row, place)
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        raise InputError(f"{place}: 'id' must be text or a whole number, not {_shown(identifier)}.")
    if identifier == "":
        raise InputError(f"{place}: 'id' is empty. Give each caption its own id.")
    return str(identifier)


def row_from_sample(sample: Sample) -> Row:
    """The row that `sample_from_row` turns back into `sample`; empty fields are left out."""
    row: Row = {
        "id": sample.id,
        **{name: _path(getattr(sample, name), name, sample.id) for name in ("image", "video")},
        "caption": sample.caption,
        "references": list(sample.references),
        "source": sample.source,
        "lang": sample.lang,
        "system": sample.system,
        "ratings": [_plain_rating(rating) for rating in sample.ratings],
    }
    row = {name: value for name, value in row.items() if name == "caption" or (value is not None and value != [])}
    # A column 'source' that holds no text is read back as it is.
    clash = [name for name, value in sample.meta.items() if not _is_own_column(name, value, sample)]
    return {**row, "meta": dict(sample.meta)} if clash else {**row, **sample.meta}


def _is_own_column(name: str, value: Any, sample: Sample) -> bool:
    """Whether a column of this name is read back to `meta`, as it is."""
    if name == "source":
        return sample.source is None and not isinstance(value, str)
    meant = field_meant_by(name)
    if meant is not None and not getattr(sample, meant):
        return False
    return canonical_name(name) == name and name not in (*FIELDS, "meta")


def _path(value: ImageSource | VideoSource | None, name: str, identifier: str) -> str | None:
    if value is not None and not isinstance(value, str | PathLike):
        raise InputError(f"sample {identifier!r}: its {name} is in memory, not in a file, so it cannot be written.")
    return None if value is None else fspath(value)


def row_from_cells(cells: dict[str, str], place: Place) -> Row:
    """A row of a table of text: lists, ratings and meta are JSON inside their cell; an empty cell is a missing value."""
    row: Row = {"caption": None} if "caption" in cells else {}
    for name, cell in cells.items():
        if cell:
            row[name] = from_cell(name, cell, place)
    return row


def from_cell(name: str, cell: str, place: Place) -> Any:
    """The value of a cell: one reference may be plain text, a list must be JSON."""
    if name in ("ratings", "meta") or (name == "references" and cell.startswith("[")):
        try:
            return parse_json(cell, place._replace(unit="cell"))
        except InputError:
            example = {"references": '["a dog", "the dog"]', "ratings": "[4, 3.5]", "meta": '{"source": "web"}'}[name]
            raise InputError(f"{place}: '{name}' is not JSON: {_shown(cell)}. Write it like {example}.") from None
    return cell


def cells_from_sample(sample: Sample) -> dict[str, str]:
    row = row_from_sample(replace(sample, meta={}))
    cells = {name: (value or "") if isinstance(value, str | None) else to_json(value) for name, value in row.items()}
    if sample.meta:
        cells["meta"] = to_json(dict(sample.meta))
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


def _ratings(value: Any, place: Place) -> tuple[Rating, ...]:
    if value is None:
        return ()
    return tuple(_rating(entry, place) for entry in (value if isinstance(value, list) else [value]))


def _rating(entry: Any, place: Place) -> Rating:
    """A number, or an object with `value` and perhaps `rater`, `criterion` and `time`."""
    record = entry if isinstance(entry, dict) else {"value": entry}
    if finite_number(record.get("value")) is None:
        raise InputError(f"{place}: 'ratings' must be numbers, or objects with a 'value', not {_shown(entry)}.")
    unknown = record.keys() - set(Rating._fields)
    if unknown:
        raise InputError(f"{place}: a rating has no {min(unknown)!r}; it has {', '.join(Rating._fields)}.")
    about = {name: None if record.get(name) is None else str(record[name]) for name in Rating._fields[1:]}
    return Rating(record["value"], **about)


def _plain_rating(rating: Rating) -> float | dict[str, Any]:
    """A rating without anything but its value is a number."""
    record = {name: value for name, value in rating._asdict().items() if value is not None}
    return record if len(record) > 1 else rating.value


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
    columns = ", ".join(repr(key) for key in list(row)[:8]) or "none"
    hint = f" Pass a file of references with {option('references')}." if name == "caption" and "references" in row else ""
    if name == "id":
        hint = f" If another column names the rows, say so: {option('columns', 'id=NAME')}."
    return InputError(
        f"{place}: there is no '{name}' (columns with a value: {columns}). Every row needs 'id' and 'caption'.{hint}"
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def of_one_table(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows with the columns of the first; a value that has none of them would stand below the name of another."""
    columns: list[str] | None = None
    for number, row in enumerate(rows, 1):
        columns = columns or list(row)
        if list(row) != columns:
            other = sorted(row.keys() ^ set(columns)) or ["another order"]
            raise InputError(f"row {number} has not the columns of the first ({', '.join(other)}). Write JSONL.")
        yield row


def free_name(name: str, taken: Container[str]) -> str:
    """The name of a column that makes room for one of ours."""
    while name in taken:
        name += " (input)"
    return name

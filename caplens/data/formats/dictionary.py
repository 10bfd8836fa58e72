"""The JSON dictionaries of CLIPScore: `{id: caption}` for candidates, `{id: [reference, …]}` for references."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from caplens.data.files import Place
from caplens.data.formats.json_document import to_json
from caplens.data.rows import Row
from caplens.data.sample import Sample
from caplens.errors import InputError, option


def read_rows(document: dict[str, Any], path: Path, *, captions: bool) -> Iterator[tuple[Place, Row]]:
    """Rows of a dictionary. Where captions are expected, `{id: [caption]}` is read too, if every list has one entry."""
    single = captions and all(isinstance(value, list) and len(value) == 1 for value in document.values())
    for number, (identifier, value) in enumerate(document.items(), 1):
        place = Place(path, number, "entry")
        if single:
            yield place, {"id": identifier, "caption": value[0]}
        elif isinstance(value, list) and captions:
            raise InputError(
                f"{place} ({identifier!r}): this file holds references, not captions. Pass it with {option('references')}."
            )
        elif isinstance(value, str) or value is None:
            yield place, {"id": identifier, "caption": value}
        elif isinstance(value, list):
            yield place, {"id": identifier, "references": value}
        else:
            raise InputError(f"{place} ({identifier!r}): must be a caption or a list of references.")


def write_captions(samples: Iterable[Sample], path: Path) -> None:
    _dump({sample.id: sample.caption for sample in samples}, path)


def write_references(samples: Iterable[Sample], path: Path) -> None:
    _dump({sample.id: list(sample.references) for sample in samples if sample.references}, path)


def _dump(document: dict[str, Any], path: Path) -> None:
    path.write_text(to_json(document, indent=1) + "\n", encoding="utf-8")

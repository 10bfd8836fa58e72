"""JSON Lines: one sample per line."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from caplens.data.files import Place, Source
from caplens.data.formats.json_document import broken_json, check_characters, unreadable_json
from caplens.data.rows import Row, row_from_sample
from caplens.data.sample import Sample
from caplens.errors import InputError


def read_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        place = Place(source.path, number)
        try:
            row = json.loads(line, strict=False)
        except json.JSONDecodeError as error:
            raise broken_json(place, error) from None
        except (RecursionError, ValueError) as error:
            raise unreadable_json(place, error) from None
        if not isinstance(row, dict):
            raise InputError(f'{place}: each line must be an object such as {{"id": "1", "caption": "a dog"}}.')
        check_characters(line, row, place)
        yield place, row


def write(samples: Iterable[Sample], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for sample in samples:
            try:
                out.write(json.dumps(row_from_sample(sample), ensure_ascii=False) + "\n")
            except TypeError as error:
                raise InputError(f"sample {sample.id!r}: something in it cannot be written as JSON ({error}).") from None

"""JSON Lines: one sample per line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from caplens.data.files import Place, Source
from caplens.data.formats.json_document import parse_json, to_json
from caplens.data.rows import Row, row_from_sample
from caplens.data.sample import Sample
from caplens.errors import InputError


def read_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        place = Place(source.path, number)
        row = parse_json(line, place)
        if not isinstance(row, dict):
            raise InputError(f'{place}: each line must be an object such as {{"id": "1", "caption": "a dog"}}.')
        yield place, row


def write(samples: Iterable[Sample], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for sample in samples:
            try:
                out.write(to_json(row_from_sample(sample)) + "\n")
            except InputError as error:
                raise InputError(f"sample {sample.id!r}: {error}") from None

"""CSV and TSV with a header line; lists are JSON inside their cell."""

import csv
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from caplens.data.files import Place, Source
from caplens.data.rows import FIELDS, Row, cells_from_sample, row_from_cells
from caplens.data.sample import Sample
from caplens.errors import InputError


def delimiter_of(header: str) -> str | None:
    """The separator of a header line that names the columns of samples, or None if it does not."""
    for delimiter in "\t,;":
        try:
            names = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > 1 and {name.strip() for name in names} & {"id", "image_id", "caption", "references"}:
            return delimiter
    return None


def read_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    csv.field_size_limit(sys.maxsize)
    lines = (line for _, line in source.lines())
    first = next(lines)
    reader = csv.reader(chain([first], lines), delimiter=delimiter_of(first) or ",", strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        repeated = {name for name in header if header.count(name) > 1}
        if repeated:
            raise InputError(f"{Place(source.path, 1)}: the column {min(repeated)!r} stands there twice. Rename one.")
        for cells in reader:
            if not cells:
                continue
            place = Place(source.path, reader.line_num)
            if len(cells) != len(header):
                raise InputError(
                    f"{place}: {len(cells)} cells where the header has {len(header)}. Put text that holds the separator"
                    ' in "double quotes".'
                )
            yield place, row_from_cells(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise InputError(
            f"{Place(source.path, reader.line_num)}: broken table ({error}). Put text with quotes, separators or line ends in"
            ' "double quotes", and double the quotes inside it.'
        ) from None


def write(samples: Iterable[Sample], path: Path, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, [*FIELDS, "meta"], restval="", delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(cells_from_sample(sample) for sample in samples)

"""Image-Caption-Quality: machine captions of Open Images, and which share of people found each good (Levinboim et al. 2021).

Its table has an image, a caption and the mean of ten ratings, with or without a line that names the columns.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.files import Place, Source
from caplens.data.formats.json_document import finite_number
from caplens.data.records import field, find_file, numbers, read_cells, read_records, text
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "It is in oid.rated-image-captions.v1.zip (google-research-datasets/Image-Caption-Quality-Dataset)."
_PARTS = {"test": 4593, "dev": 2393, "train": 58355}
"""Part -> captions."""
_NAMES = ("oid.rated-image-captions.v1.{part}.tsv", "{part}.tsv")
_COLUMNS = {
    "image": ("image_id", "imageid", "image", "image_url", "url"),
    "caption": ("caption", "machine_caption"),
    "rating": ("rating", "avg_rating", "average_rating", "score"),
}


class CaptionQuality(RatingBenchmark):
    name = "caption-quality"
    summary = "share of people that find a machine caption of an Open Images photo good"
    protocols = {part: f"the {part} part, the mean rating of each caption" for part in _PARTS}
    coefficients = ("spearman", "pearson", "tau-b", "tau-c")
    folder, marker = "caption-quality", "oid.rated-image-captions"

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        names = [name.format(part=protocol) for name in _NAMES]
        path = find_file(data, names, f"the {protocol} part", _WHERE)
        samples: list[Sample] = []
        human: list[float] = []
        for place, (image, caption, rating) in _rows(path):
            key = Path(text(image, place)).stem
            samples.append(Sample(f"{key} {len(samples)}", text(caption, place), image=f"{key}.jpg", lang="en"))
            human.append(numbers(rating, place)[0])
        warnings = count_warning(len(samples), _PARTS[protocol], "rated captions")
        return RatedSamples(samples, np.array(human), warnings=warnings)


def _rows(path: Path) -> Iterator[tuple[Place, tuple[Any, Any, Any]]]:
    """Image, caption and rating of each row; the last cell of a first line that names columns is no number."""
    with Source(path) as source:
        first = next(read_cells(source, "\t"), None)
    if first is not None and finite_number(_number(first[1][-1])) is None:
        for place, record in read_records(path):
            image, caption, rating = (field(record, names, place) for names in _COLUMNS.values())
            yield place, (image, caption, rating)
        return
    with Source(path) as source:
        for place, cells in read_cells(source, "\t"):
            if len(cells) < len(_COLUMNS):
                raise InputError(f"{place}: an image, a caption and a rating are expected.")
            yield place, (cells[0], cells[1], cells[-1])


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None

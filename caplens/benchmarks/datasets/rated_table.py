"""Benchmarks in the form of a table: one row per caption, with its image, references and ratings."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark, aggregate
from caplens.data.records import field, find_file, numbers, read_records, text, texts
from caplens.data.sample import Sample


class RatedTable(RatingBenchmark):
    """Subclasses set the names of the file and its columns; a column may have other names in other releases."""

    files: ClassVar[tuple[str, ...]]
    """Possible names of the file; `{lang}` is replaced by the language."""
    where: ClassVar[str]
    """Where to get the file, for error messages."""
    published_rows: ClassVar[int | None] = None
    protocols = {
        "mean": "the mean of a caption's ratings (what papers report)",
        "expanded": "each rating is a data point",
        "median": "the median of a caption's ratings",
    }
    image: ClassVar[tuple[str, ...]] = ("imgid", "image", "image_path", "file_name", "filename", "image_id")
    caption: ClassVar[tuple[str, ...]] = ("mt", "cand", "caption", "hyp")
    rating: ClassVar[tuple[str, ...]] = ("score", "human_score", "ratings", "rating", "mean")
    references: ClassVar[tuple[str, ...]] = ("refs", "references")

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        names = [name.format(lang=lang) for name in self.files]
        samples: list[Sample] = []
        human: list[float] = []
        row_count = 0
        for place, record in read_records(find_file(data, names, f"the ratings of {self.name} in {lang!r}", self.where)):
            row_count += 1
            image, caption = str(field(record, self.image, place)), text(field(record, self.caption, place), place)
            cell = next((record[name] for name in self.references if record.get(name)), ())
            references = texts(cell, place) if cell else ()
            for point, value in enumerate(aggregate(numbers(field(record, self.rating, place), place), protocol)):
                samples.append(Sample(f"{image} {row_count} {point}", caption, references, image=image, lang=lang))
                human.append(value)
        expected = self.published_rows
        warnings = [] if expected is None else count_warning(row_count, expected, "rated captions")
        return RatedSamples(samples, np.array(human), warnings=warnings)

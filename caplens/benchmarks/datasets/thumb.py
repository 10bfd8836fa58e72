"""THumB 1.0: captions of 500 COCO images by four systems and by people, rated with a rubric (Kasai et al. 2022).

The human caption is one of the image's references; it is not used as a reference of itself.
"""

from pathlib import Path

import numpy as np

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.records import add_once, field, find_file, numbers, read_records, texts
from caplens.data.sample import Sample

_WHERE = "It is in the folder mscoco of the THumB repository (jungokasai/THumB)."


class Thumb(RatingBenchmark):
    name = "thumb"
    summary = "rubric-based ratings of 2,500 captions of COCO images"
    protocols = {
        "with humans": "machine and human captions",
        "machine": "captions that are not a reference of their image",
    }
    coefficients = ("pearson", "tau-c", "tau-b", "spearman")
    folder, marker = "thumb", "mscoco_THumB-1.0.jsonl"

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        rows = list(read_records(find_file(data, [self.marker], "the ratings file", _WHERE)))
        path = find_file(data, ["mscoco_references.json", "mscoco_references.jsonl"], "the references file", _WHERE)
        references_by_segment: dict[str, tuple[str, ...]] = {}
        for place, row in read_records(path):
            add_once(references_by_segment, str(field(row, ["seg_id"], place)), texts(field(row, ["refs"], place), place), place)
        samples, human = [], []
        for place, row in rows:
            segment, caption, image = (str(field(row, [name], place)) for name in ("seg_id", "hyp", "image"))
            image_references = references_by_segment.get(segment, ())
            if protocol == "machine" and caption in image_references:
                continue
            references = tuple(text for text in image_references if text != caption)
            samples.append(Sample(f"{image} {place.number}", caption, references, image=image, lang="en"))
            human += numbers(field(row, ["human_score"], place), place)[:1]
        return RatedSamples(samples, np.array(human), warnings=count_warning(len(rows), 2500, "rated captions"))

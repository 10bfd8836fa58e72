"""Crisscrossed Captions, its part about images and captions (SITS): how similar people find a COCO image and a caption of this or
another image, from 0 to 5 (Parekh et al. 2021).

A caption is named by its id in COCO's annotations (`COCO_val2014:sentid:770337`), whose file must be in the same folder. The
references are the other captions of the image.
"""

import re
from pathlib import Path

import numpy as np

from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.records import add_once, field, find_file, numbers, read_json, read_records, text
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "It is in the folder data of the repository google-research-datasets/Crisscrossed-Captions."
_COCO_WHERE = "It comes from COCO (annotations_trainval2014.zip)."
_SENTENCE_ID = re.compile(r"sentid:(\d{1,12})$", re.ASCII)
_IMAGE_ID = re.compile(r"(\d{12})\.jpg$", re.ASCII)


class CrisscrossedCaptions(RatingBenchmark):
    name = "crisscrossed"
    summary = "similarity (0 to 5) of COCO images and captions of the same or of other images"
    protocols = {
        "test": "the test part, each pair with its mean rating",
        "val": "the validation part",
        "other-images": "the test part, only captions that were written about another image",
    }
    coefficients = ("spearman", "pearson", "tau-b", "tau-c")
    folder, marker = "crisscrossed", "sits_"
    image_folders = ("val2014", "images")

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        part = "val" if protocol == "val" else "test"
        path = find_file(data, [f"sits_{part}.csv", f"data/sits_{part}.csv"], f"the file sits_{part}.csv", _WHERE)
        by_sentence, by_image = _read_captions(find_file(data, ["captions_val2014.json"], "captions_val2014.json", _COCO_WHERE))
        samples, human = [], []
        for place, record in read_records(path):
            sentence, image = (str(field(record, [name], place)) for name in ("caption", "image"))
            match, number = _SENTENCE_ID.search(sentence), _IMAGE_ID.search(image)
            if match is None or number is None or int(match[1]) not in by_sentence:
                raise InputError(f"{place}: {sentence!r} and {image!r} are not a caption and an image of captions_val2014.json.")
            if protocol == "other-images" and record.get("sampling_method") == "c2i_original":
                continue
            caption = by_sentence[int(match[1])]
            references = tuple(other for other in by_image.get(int(number[1]), ()) if other.strip() != caption.strip())
            samples.append(Sample(f"{match[1]} {number[1]}", caption, references, image=image, lang="en"))
            human.append(numbers(field(record, ["agg_score"], place), place)[0])
        return RatedSamples(samples, np.array(human))


def _read_captions(path: Path) -> tuple[dict[int, str], dict[int, list[str]]]:
    """Id of the caption -> caption, and id of the image -> captions."""
    by_sentence: dict[int, str] = {}
    by_image: dict[int, list[str]] = {}
    for annotation in read_json(path)["annotations"]:
        caption = text(annotation["caption"], path)
        add_once(by_sentence, int(annotation["id"]), caption, path)
        by_image.setdefault(int(annotation["image_id"]), []).append(caption)
    return by_sentence, by_image

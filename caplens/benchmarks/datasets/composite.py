"""Composite: captions of photos of Flickr8k, Flickr30k and COCO, rated 1 to 5 for correctness and thoroughness (Aditya et al.
2015).

Each line of its files is one photo with three or four captions and as many ratings, at fixed columns. The photos' other captions
are their references, where the files of those data sets lie beside.
"""

import csv
from pathlib import Path, PurePosixPath

import numpy as np

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.files import Place, Source
from caplens.data.records import find_file, numbers, read_fields, read_json, text
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "They are in AMT_eval.zip from the authors (Image to Scene Description Graph)."
_PHOTO, _FIRST, _RATED = 27, 28, 3
"""The columns of the photo's address and of the first caption; and how many captions papers use: the third and fourth part have
a fourth caption, which is left out."""
_PARTS = {"8k": 3, "30k": 4, "coco": 4}
"""Part -> captions in a line."""
_CAPTIONS = ("Flickr8k.token.txt", "results_20130124.token", "captions_train2014.json", "captions_val2014.json")


class Composite(RatingBenchmark):
    name = "composite"
    summary = "ratings (1 to 5) of 11,985 captions of Flickr8k, Flickr30k and COCO photos"
    protocols = {
        "correctness": "how right a caption is (what papers report)",
        "thoroughness": "how much a caption tells",
        "both": "the mean of the two",
    }
    folder, marker = "composite", "8k_correctness.csv"
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 2; CLIP scores there are with ViT-B/32",
            "correctness",
            {
                "tau-c": {"bleu1": 31.3, "bleu4": 30.6, "rouge-l": 32.4, "meteor": 38.9, "cider": 37.7, "spice": 40.3}
                | {"clipscore": 53.8, "refclipscore": 55.4, "pacs": 55.7, "refpacs": 57.3},
                "tau-b": {"bleu1": 29.0, "bleu4": 28.3, "rouge-l": 30.0, "meteor": 36.0, "cider": 34.9, "spice": 38.8}
                | {"clipscore": 49.8, "refclipscore": 51.2, "pacs": 51.5, "refpacs": 53.0},
            },
        ),
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        kinds = ["correctness", "thoroughness"] if protocol == "both" else [protocol]
        ratings = [_read(data, kind) for kind in kinds]
        captions = _references(data)
        samples, human = [], []
        for key, values in ratings[0].items():
            photo, caption, _ = key
            if any(key not in other for other in ratings):
                raise InputError(f"{data}: the files of correctness and thoroughness are not about the same captions ({photo}).")
            references = tuple(one for one in captions.get(PurePosixPath(photo).stem, []) if one.strip() != caption.strip())
            samples.append(Sample(" ".join(map(str, key)), caption, references, image=photo, lang="en"))
            human.append(float(np.mean([values, *(other[key] for other in ratings[1:])])))
        return RatedSamples(samples, np.array(human), warnings=count_warning(len(samples), 11985, "rated captions"))


def _read(data: Path, kind: str) -> dict[tuple[str, str, int], float]:
    """(photo, caption, its number) -> rating. The authors' files of thoroughness are called throughness."""
    found: dict[tuple[str, str, int], float] = {}
    for part, count in _PARTS.items():
        names = [f"{part}_{kind}.csv", *([f"{part}_throughness.csv"] if kind == "thoroughness" else [])]
        path = find_file(data, names, f"the file of {kind} of the part {part!r}", _WHERE)
        with Source(path) as source:
            reader = csv.reader((line for _, line in source.lines()), delimiter=";")
            next(reader, None)
            for cells in reader:
                place = Place(path, reader.line_num)
                photo = PurePosixPath(cells[_PHOTO]).name if len(cells) > _PHOTO else ""
                if not photo:
                    # The files end with rows that sum up.
                    continue
                if len(cells) < _FIRST + 2 * count:
                    raise InputError(f"{place}: {len(cells)} columns where at least {_FIRST + 2 * count} are expected.")
                for number in range(_RATED):
                    key = (photo, cells[_FIRST + number].strip(), number)
                    found[key] = numbers(cells[_FIRST + count + number], place)[0]
    return found


def _references(data: Path) -> dict[str, list[str]]:
    """Photo without suffix -> captions, of those files that are there."""
    found: dict[str, list[str]] = {}
    for name in _CAPTIONS:
        path = next(iter(sorted(data.glob(f"{name}*"))), None)
        if path is None:
            continue
        if ".json" in name:
            document = read_json(path)
            try:
                names = {image["id"]: PurePosixPath(image["file_name"]).stem for image in document["images"]}
                for annotation in document["annotations"]:
                    found.setdefault(names[annotation["image_id"]], []).append(text(annotation["caption"], path))
            except (KeyError, TypeError) as error:
                raise InputError(f"{path}: this is no file of COCO captions; {error} is missing somewhere.") from None
        else:
            for _, (identifier, caption) in read_fields(path, 2):
                found.setdefault(PurePosixPath(identifier.partition("#")[0]).stem, []).append(caption)
    return found

"""Composite: captions of photos of Flickr8k, Flickr30k and COCO, rated 1 to 5 for correctness and thoroughness (Aditya et al.
2015).

Each row of its files is a photo with three or four captions and their ratings, in fixed columns. The references are the photo's
captions in Flickr8k, Flickr30k or COCO, if the caption files of those data sets are in the same folder.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.files import Place, Source
from caplens.data.records import add_once, find_file, numbers, read_cells, read_fields, read_json, text
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "They are in AMT_eval.zip from the authors (Image to Scene Description Graph)."
_PHOTO_COLUMN, _CAPTION_COLUMN = 27, 28
"""The columns of the photo's address and of its first caption."""
_CAPTIONS_USED = 3
"""Papers leave out the fourth caption."""
_PARTS = {"8k": 3, "30k": 4, "coco": 4}
"""Part -> captions per row."""
CaptionKey = tuple[str, str, int]
"""Photo, caption, and number of the caption."""
_REFERENCE_FILES = ("Flickr8k.token.txt", "results_20130124.token", "captions_train2014.json", "captions_val2014.json")


class Composite(RatingBenchmark):
    name = "composite"
    summary = "ratings (1 to 5) of 11,985 captions of Flickr8k, Flickr30k and COCO photos"
    protocols = {
        "correctness": "how correct a caption is (what papers report)",
        "thoroughness": "how thoroughly a caption describes the image",
        "both": "the mean of the two",
        "unique": "correctness of all captions, the fourth too, each once for a photo (about 13,146: multilingual CLIPScore)",
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
        Published(
            "multilingual CLIPScore, table 2",
            "unique",
            {
                "tau-b": {
                    "bleu1": 45.8,
                    "bleu4": 46.4,
                    "cider": 48.1,
                    "clipscore": 50.6,
                    "refclipscore": 56.8,
                    "clip+cider": 54.3,
                },
                "tau-c": {
                    "bleu1": 46.2,
                    "bleu4": 46.9,
                    "cider": 48.8,
                    "clipscore": 51.3,
                    "refclipscore": 57.6,
                    "clip+cider": 55.1,
                },
                "spearman": {"bleu1": 63.0, "bleu4": 63.7, "cider": 65.0, "clipscore": 67.9, "refclipscore": 74.7}
                | {"clip+cider": 72.2},
            },
        ),
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        kinds = {"both": ["correctness", "thoroughness"], "unique": ["correctness"]}.get(protocol, [protocol])
        ratings_by_kind = [_read_ratings(data, kind, every_caption=protocol == "unique") for kind in kinds]
        references_by_photo = _read_references(data)
        samples, human = [], []
        for key in ratings_by_kind[0].by_caption:
            photo, caption, _ = key
            if any(key not in ratings.by_caption for ratings in ratings_by_kind):
                raise InputError(f"{data}: the files of correctness and thoroughness are not about the same captions ({photo}).")
            photo_captions = references_by_photo.get(PurePosixPath(photo).stem, [])
            references = tuple(text for text in photo_captions if text.strip() != caption.strip())
            samples.append(Sample(" ".join(map(str, key)), caption, references, image=photo, lang="en"))
            human.append(float(np.mean([ratings.by_caption[key] for ratings in ratings_by_kind])))
        expected = 13146 if protocol == "unique" else 11985
        warnings, contradicted = count_warning(len(samples), expected, "rated captions"), ratings_by_kind[0].contradicted
        if contradicted:
            warnings.append(f"{contradicted:,} captions appear twice for a photo with different ratings; the first one counts.")
        return RatedSamples(samples, np.array(human), warnings=warnings)


class _Ratings(NamedTuple):
    by_caption: dict[CaptionKey, float]
    contradicted: int
    """Captions that a photo has twice, with different ratings."""


def _read_ratings(data: Path, kind: str, *, every_caption: bool) -> _Ratings:
    """With `every_caption`, also the fourth; a caption that a photo has twice then counts once, with its first rating."""
    ratings: dict[CaptionKey, float] = {}
    contradicted: set[CaptionKey] = set()
    for place, (photo, caption, number), rating in _rated_captions(data, kind, every_caption=every_caption):
        if not every_caption:
            add_once(ratings, (photo, caption, number), rating, place)
        elif caption and ratings.setdefault((photo, caption, 0), rating) != rating:
            contradicted.add((photo, caption, 0))
    return _Ratings(ratings, len(contradicted))


def _rated_captions(data: Path, kind: str, *, every_caption: bool) -> Iterator[tuple[Place, CaptionKey, float]]:
    """The ratings of all parts. The authors spell the names of the thoroughness files "throughness"."""
    for part, count in _PARTS.items():
        names = [f"{part}_{kind}.csv", *([f"{part}_throughness.csv"] if kind == "thoroughness" else [])]
        path = find_file(data, names, f"the {kind} file of the part {part!r}", _WHERE)
        with Source(path) as source:
            rows = read_cells(source, ";")
            next(rows, None)
            for place, cells in rows:
                photo = PurePosixPath(cells[_PHOTO_COLUMN]).name if len(cells) > _PHOTO_COLUMN else ""
                if not photo:
                    # The files end with summary rows.
                    continue
                width = _CAPTION_COLUMN + 2 * count
                if len(cells) < width:
                    raise InputError(f"{place}: {len(cells)} columns where at least {width} are expected.")
                for number in range(count if every_caption else _CAPTIONS_USED):
                    caption, rating = cells[_CAPTION_COLUMN + number].strip(), cells[_CAPTION_COLUMN + count + number]
                    if caption or not every_caption:
                        yield place, (photo, caption, number), numbers(rating, place)[0]


def _read_references(data: Path) -> dict[str, list[str]]:
    """Photo without suffix -> captions, from those caption files that exist."""
    captions: dict[str, list[str]] = {}
    for name in _REFERENCE_FILES:
        path = next(iter(sorted(data.glob(f"{name}*"))), None)
        if path is None:
            continue
        if ".json" in name:
            document = read_json(path)
            try:
                names: dict[object, str] = {}
                for image in document["images"]:
                    add_once(names, image["id"], PurePosixPath(image["file_name"]).stem, path)
                for annotation in document["annotations"]:
                    captions.setdefault(names[annotation["image_id"]], []).append(text(annotation["caption"], path))
            except (KeyError, TypeError):
                raise InputError(
                    f"{path}: this is not a file of COCO captions; it needs 'images' with 'id' and 'file_name', and 'annotations'"
                    " with 'image_id' and 'caption'."
                ) from None
        else:
            for _, (identifier, caption) in read_fields(path, 2):
                captions.setdefault(PurePosixPath(identifier.partition("#")[0]).stem, []).append(caption)
    return captions

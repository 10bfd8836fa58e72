"""The captions that PR-MCS perturbs (section 5.1): COCO, VizWiz, Flickr8k, Multi30k and M-FineCap3k, in their original layouts.

Each data set is one caption per image, as samples for `caplens robustness`. M-FineCap3k names critical objects, and has the
few-shot split of section 5.4: 300 captions for training, the rest for evaluation.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.data.records import add_once, field, find_file, read_fields, read_json, read_records, text
from caplens.data.sample import Sample
from caplens.errors import InputError

FEW_SHOT = 300
"""Captions of M-FineCap3k that the few-shot setting trains on, a tenth of it."""
_COCO_SAMPLES = 3000
_PARTS = ("all", "few-shot", "rest")
_OBJECTS = ("objects", "critical_objects", "critical objects", "Critical Objects", "Critical_Objects")
Loader = Callable[[Path, str, int], Iterator[Sample]]


class CaptionSet(NamedTuple):
    """A data set of good captions."""

    load: Loader
    languages: tuple[str, ...]
    summary: str


def load_captions(name: str, data: Path, lang: str = "en", seed: int = 0, part: str = "all") -> list[Sample]:
    """The captions of a data set.

    Parameters
    ----------
    name
        A key of `CAPTION_SETS`.
    data
        The folder with its files.
    lang
        The language of the captions.
    seed
        For the random 3,000 of COCO, and for the few-shot split.
    part
        `all`, or a part of the few-shot split: `few-shot`, 300 captions for training, or `rest`.

    Returns
    -------
    list of Sample
        One caption per image.

    Raises
    ------
    InputError
        If there is no such data set, language or part, or a file is missing.
    """
    if name not in CAPTION_SETS:
        raise InputError(f"unknown data set of captions {name!r}; choose from: {', '.join(CAPTION_SETS)}.")
    if part not in _PARTS:
        raise InputError(f"unknown part {part!r}; choose from: {', '.join(_PARTS)}.")
    if lang not in CAPTION_SETS[name].languages:
        raise InputError(
            f"{name} has captions in {', '.join(CAPTION_SETS[name].languages)}, not in {lang!r}; translate them with"
            " 'caplens translate'."
        )
    samples = list(CAPTION_SETS[name].load(data, lang, seed))
    return samples if part == "all" else few_shot_split(samples, seed)[_PARTS.index(part) - 1]


def few_shot_split(samples: Sequence[Sample], seed: int = 0) -> tuple[list[Sample], list[Sample]]:
    """A tenth of the captions, at most 300, and the others (PR-MCS, section 5.4)."""
    count = min(FEW_SHOT, len(samples) // 10)
    if not count:
        raise InputError(f"{len(samples)} captions cannot be split one to nine.")
    drawn = set(np.random.default_rng(seed).choice(len(samples), count, replace=False).tolist())
    return [samples[row] for row in sorted(drawn)], [sample for row, sample in enumerate(samples) if row not in drawn]


def _coco(data: Path, lang: str, seed: int) -> Iterator[Sample]:
    """3,000 random captions of the validation images, each of another image."""
    path = find_file(data, ["captions_val2014.json", "captions_val2017.json"], "captions_val2014.json", "It comes from COCO.")
    captions = list(_first_captions(path))
    rows = np.random.default_rng(seed).permutation(len(captions))[:_COCO_SAMPLES]
    return (captions[row] for row in sorted(rows))


def _vizwiz(data: Path, lang: str, seed: int) -> Iterator[Sample]:
    path = find_file(data, ["val.json", "annotations/val.json"], "the annotations val.json", "They come with VizWiz-Captions.")
    return _first_captions(path)


def _first_captions(path: Path) -> Iterator[Sample]:
    """The first caption of each image of a file like COCO's; VizWiz marks those that were rejected or prepared."""
    document = read_json(path)
    try:
        names: dict[Any, str] = {}
        for image in document["images"]:
            add_once(names, image["id"], str(image["file_name"]), path)
        seen = set()
        for annotation in document["annotations"]:
            image = annotation["image_id"]
            if image not in seen and not annotation.get("is_rejected") and not annotation.get("is_precanned"):
                seen.add(image)
                yield Sample(str(image), text(annotation["caption"], path).strip(), image=names[image], lang="en")
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: this is not a file of captions like COCO's ({error!r}).") from None


def _flickr8k(data: Path, lang: str, seed: int) -> Iterator[Sample]:
    """The first caption of each test photo."""
    where = "It comes with the Flickr8k text archive."
    names = find_file(data, ["Flickr_8k.testImages.txt", "test.txt"], "the list of test photos", where)
    photos = {cells[0] for _, cells in read_fields(names, 1)}
    captions = find_file(data, ["Flickr8k.token.txt"], "Flickr8k.token.txt", where)
    firsts: dict[str, str] = {}
    for place, (identifier, caption) in read_fields(captions, 2):
        photo, _, number = identifier.partition("#")
        if number == "0" and photo in photos:
            add_once(firsts, photo, caption, place)
    return (Sample(photo, caption, image=photo, lang="en") for photo, caption in firsts.items())


def _multi30k(data: Path, lang: str, seed: int) -> Iterator[Sample]:
    """Test 2016: the captions of Flickr30k and their translations, a line each."""
    where = "They are in the repository multi30k/dataset (data/task1)."
    folders = ("", "raw/", "data/task1/raw/")
    captions = find_file(data, [f"{folder}test_2016_flickr.{lang}" for folder in folders], f"the captions in {lang!r}", where)
    folders = ("", "image_splits/", "data/task1/image_splits/")
    images = find_file(data, [f"{folder}test_2016_flickr.txt" for folder in folders], "the list of images", where)
    names = {place.number: cells[0] for place, cells in read_fields(images, 1)}
    texts = {place.number: cells[0] for place, cells in read_fields(captions, 1, tabs_in_last=True)}
    if len(names) != len(texts):
        raise InputError(f"{captions}: {len(texts):,} captions where {images.name} names {len(names):,} images.")
    apart = names.keys() ^ texts.keys()
    if apart:
        line = next(line for line in [*names, *texts] if line in apart)
        raise InputError(f"{captions}, line {line}: it is blank here or in {images.name}, whose lines belong together.")
    if len(set(names.values())) < len(names):
        raise InputError(f"{images}: an image appears twice. Each line names another.")
    return (Sample(name, texts[line], image=name, lang=lang) for line, name in names.items())


def _finecap(data: Path, lang: str, seed: int) -> Iterator[Sample]:
    """A table per language, with the critical objects of each caption, in a list or separated by commas."""
    names = [f"m-finecap3k.{lang}.{suffix}" for suffix in ("jsonl", "json", "csv", "tsv")]
    path = find_file(data, names, f"M-FineCap3k in {lang!r}", "It was announced by Kim et al. (PR-MCS), one file per language.")
    for number, (place, record) in enumerate(read_records(path)):
        image = str(field(record, ["image", "img", "image_id", "file_name"], place))
        objects: Any = next((record[name] for name in _OBJECTS if record.get(name)), [])
        listed = [part.strip() for part in objects.split(",")] if isinstance(objects, str) else objects
        if not isinstance(listed, list):
            raise InputError(f"{place}: the critical objects are a list, or texts separated by commas.")
        meta = {"objects": [text(part, place) for part in listed if part]}
        caption = text(field(record, ["caption", "captions"], place), place)
        yield Sample(f"{image} {number}", caption, image=image, lang=lang, meta=meta)


CAPTION_SETS = {
    "coco-3k": CaptionSet(_coco, ("en",), "3,000 captions of COCO's validation images"),
    "vizwiz": CaptionSet(_vizwiz, ("en",), "the first caption of each validation image of VizWiz-Captions"),
    "flickr8k": CaptionSet(_flickr8k, ("en",), "the first caption of each test photo of Flickr8k"),
    "multi30k": CaptionSet(_multi30k, ("en", "de", "fr", "cs"), "Multi30k, test 2016"),
    "m-finecap3k": CaptionSet(_finecap, ("en", "de", "es", "fr", "ja"), "long captions with critical objects"),
}

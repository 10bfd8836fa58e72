"""Files for the recipes of docs/training.md: `python benchmarks/training_data.py --data DATA --images PHOTOS --out DIR`.

DATA holds flickr8k and multi30k; photos of COCO that are not in PHOTOS are left out. Written are:

train.jsonl      captions of the training photos
cs.jsonl         for `train distill`: Czech sentences of Multi30k and the English ones they translate, without dev and test photos
tuples.jsonl     for `train pacs` without generators: a second human caption in place of a generated caption, and a strongly
                 augmented view of the photo in place of a generated image
five.jsonl       for `train prmcs`: the captions of train.jsonl in the languages of its paper
sentences.jsonl  for `train prmcs`: more captions in these languages, without photos
"""

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from caplens.data.records import find_file, read_fields
from caplens.training.mini.collection import Group, read_groups

EXCLUDED_LANGUAGES = ("bo", "mn", "ug")
"""Their captions are short machine translations."""
PRMCS_LANGUAGES = ("en", "de", "fr", "ja", "zh")
SENTENCES = 150_000


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for number, record in enumerate(records):
            out.write(json.dumps({"id": str(number), **record}, ensure_ascii=False) + "\n")


def sentences(data: Path, lang: str) -> dict[tuple[str, str], str]:
    """(photo, number) -> sentence of Multi30k."""
    path = find_file(data / "multi30k", [f"{lang}.tsv"], f"the text of Multi30k in {lang}", "See docs/mini.md.")
    return {(photo, number): text for _, (photo, number, text) in read_fields(path, 3, tabs_in_last=True)}


def view(photo: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A random crop of the photo, mirrored half of the time, with other colours."""
    share = rng.uniform(0.3, 0.6) ** 0.5
    width, height = (round(side * share) for side in photo.size)
    left, top = (int(rng.integers(0, full - side + 1)) for full, side in zip(photo.size, (width, height), strict=True))
    crop = photo.crop((left, top, left + width, top + height)).resize((224, 224))
    if rng.random() < 0.5:
        crop = ImageOps.mirror(crop)
    for enhancer in (ImageEnhance.Brightness, ImageEnhance.Color, ImageEnhance.Contrast):
        crop = enhancer(crop).enhance(rng.uniform(0.5, 1.5))
    return crop


def sentences_without_photo(groups: Sequence[Group]) -> list[dict[str, str]]:
    """Captions of groups without a photo, in the languages of PR-MCS, at random."""
    captions = [
        {"caption": caption, "lang": lang}
        for group in groups
        if group.photo is None
        for lang, caption in group.captions
        if lang in PRMCS_LANGUAGES
    ]
    random.Random(0).shuffle(captions)
    return captions[:SENTENCES]


def czech_translations(data: Path) -> Iterator[dict[str, str]]:
    """Czech captions with the English ones that they translate, without those of held-out photos."""
    held_out = {
        name.partition("_")[0] for part in ("dev", "test") for name in (data / "flickr8k" / f"{part}.txt").read_text().split()
    }
    english = sentences(data, "en")
    for key, text in sentences(data, "cs").items():
        if key in english and key[0] not in held_out:
            yield {"caption": text, "lang": "cs", "source": english[key]}


def augmented_tuples(
    images: Path, out: Path, photo: str, captions: Sequence[str], rng: np.random.Generator
) -> list[dict[str, str]]:
    """The captions of a photo, each with another one and with a view of the photo, which is written too."""
    made_image = f"views/{Path(photo).stem}.jpg"
    with Image.open(images / photo) as opened:
        view(opened.convert("RGB"), rng).save(out / made_image, quality=90)
    others = [*captions[1:], captions[0]]
    return [
        {"image": photo, "lang": "en", "made_image": made_image, "caption": caption, "made_caption": other}
        for caption, other in zip(captions, others, strict=True)
    ]


def all_tuples(images: Path, out: Path, photos: Sequence[str], groups: Sequence[Group]) -> Iterator[dict[str, str]]:
    """The English captions of every photo as tuples."""
    rng = np.random.default_rng(0)
    for photo, group in zip(photos, groups, strict=True):
        english = [caption for lang, caption in group.captions if lang == "en"]
        yield from augmented_tuples(images, out, photo, english, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "images", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    (arguments.out / "views").mkdir(parents=True, exist_ok=True)
    names = {path.stem: path.name for path in arguments.images.iterdir()}
    all_groups = read_groups(arguments.data, "train")
    groups = [group for group in all_groups if group.photo is not None and Path(group.photo).stem in names]
    photos = [names[Path(group.photo or "").stem] for group in groups]
    captions = [
        {"image": photo, "caption": caption, "lang": lang}
        for photo, group in zip(photos, groups, strict=True)
        for lang, caption in group.captions
        if lang not in EXCLUDED_LANGUAGES
    ]
    write(arguments.out / "train.jsonl", captions)
    write(arguments.out / "five.jsonl", (caption for caption in captions if caption["lang"] in PRMCS_LANGUAGES))
    write(arguments.out / "sentences.jsonl", sentences_without_photo(all_groups))
    write(arguments.out / "cs.jsonl", czech_translations(arguments.data))
    write(arguments.out / "tuples.jsonl", all_tuples(arguments.images, arguments.out, photos, groups))


if __name__ == "__main__":
    main()

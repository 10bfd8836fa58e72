"""Files for the recipes of docs/training.md: `python benchmarks/training_data.py --data DATA --images PHOTOS --out DIR`.

DATA holds flickr8k and multi30k. Made are `train.jsonl`, captions of the training photos; `cs.jsonl`, Czech sentences of Multi30k
with the English ones they translate, none about a dev or test photo; and `tuples.jsonl`, for `train pacs` without generators: a
second human caption in place of a generated one, a strongly changed view of the photo in place of a generated image. For `train
prmcs` there are `five.jsonl`, the captions of `train.jsonl` in the languages of its paper, and `sentences.jsonl`, others in these
languages whose photos are not at hand.
"""

import argparse
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from caplens.data.records import find_file, read_fields
from caplens.training.mini.collection import read_groups

LEFT_OUT = ("bo", "mn", "ug")
"""Short machine translations."""
OF_PAPER = ("en", "de", "fr", "ja", "zh")
SENTENCES = 150_000


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for number, record in enumerate(records):
            out.write(json.dumps({"id": str(number), **record}, ensure_ascii=False) + "\n")


def sentences(data: Path, lang: str) -> dict[tuple[str, str], str]:
    path = find_file(data / "multi30k", [f"{lang}.tsv"], f"the text of Multi30k in {lang}", "See docs/mini.md.")
    return {(photo, number): text for _, (photo, number, text) in read_fields(path, 3, tabs_in_last=True)}


def view(photo: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A part of the photo, mirrored by rng, in other colours."""
    share = rng.uniform(0.3, 0.6) ** 0.5
    width, height = (round(side * share) for side in photo.size)
    left, top = (int(rng.integers(0, whole - part + 1)) for whole, part in zip(photo.size, (width, height), strict=True))
    seen = photo.crop((left, top, left + width, top + height)).resize((224, 224))
    if rng.random() < 0.5:
        seen = ImageOps.mirror(seen)
    for change in (ImageEnhance.Brightness, ImageEnhance.Color, ImageEnhance.Contrast):
        seen = change(seen).enhance(rng.uniform(0.5, 1.5))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "images", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args()
    (chosen.out / "views").mkdir(parents=True, exist_ok=True)
    names = {path.stem: path.name for path in chosen.images.iterdir()}
    everything = read_groups(chosen.data, "train")
    groups = [group for group in everything if group.photo is not None]
    photos = [names[Path(group.photo or "").stem] for group in groups]
    captions = [
        {"image": photo, "caption": caption, "lang": lang}
        for photo, group in zip(photos, groups, strict=True)
        for lang, caption in group.captions
        if lang not in LEFT_OUT
    ]
    write(chosen.out / "train.jsonl", captions)
    write(chosen.out / "five.jsonl", (caption for caption in captions if caption["lang"] in OF_PAPER))
    without_photo = [said for group in everything if group.photo is None for said in group.captions if said[0] in OF_PAPER]
    random.Random(0).shuffle(without_photo)
    write(chosen.out / "sentences.jsonl", ({"caption": caption, "lang": lang} for lang, caption in without_photo[:SENTENCES]))
    held_out = {
        name.partition("_")[0]
        for part in ("dev", "test")
        for name in (chosen.data / "flickr8k" / f"{part}.txt").read_text().split()
    }
    english, czech = sentences(chosen.data, "en"), sentences(chosen.data, "cs")
    write(
        chosen.out / "cs.jsonl",
        (
            {"caption": text, "lang": "cs", "source": english[key]}
            for key, text in czech.items()
            if key in english and key[0] not in held_out
        ),
    )
    rng = np.random.default_rng(0)
    tuples = []
    for photo, group in zip(photos, groups, strict=True):
        said = [caption for lang, caption in group.captions if lang == "en"]
        with Image.open(chosen.images / photo) as opened:
            view(opened.convert("RGB"), rng).save(chosen.out / "views" / f"{Path(photo).stem}.jpg", quality=90)
        made = {"image": photo, "lang": "en", "made_image": f"views/{Path(photo).stem}.jpg"}
        tuples += [{**made, "caption": one, "made_caption": other} for one, other in zip(said, [*said[1:], said[0]], strict=True)]
    write(chosen.out / "tuples.jsonl", tuples)


if __name__ == "__main__":
    main()

"""Captioners trained on Flickr8k and COCO, and compared by language: the tables of docs/captioners.md.

python benchmarks/captioners.py data --data DATA --out captioners
    writes photos, train.jsonl (captions of training photos), flickr8k.jsonl (the part of Flickr8k), and test.jsonl and dev.jsonl
    (photos with references by language)
python benchmarks/captioners.py train --out captioners --device cuda
    trains four captioners of different size or data, and two of them further with a metric as reward
python benchmarks/captioners.py measure --out captioners
    captions test and dev photos with all of them, and prints the tables
"""

import argparse
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from caplens.training.mini.collection import Group, read_coco, read_groups

TEST_LANGUAGES = ("en", "ja", "tr")
"""Those in which the test photos have references; for the others there are dev photos."""
CAPTIONERS: dict[str, tuple[str, list[str]]] = {
    "large": ("train.jsonl", ["decoder.width=384", "decoder.layers=6", "decoder.heads=8", "decoder.dropout=0.2"]),
    "mini": ("train.jsonl", []),
    "flickr8k": ("flickr8k.jsonl", ["train.steps=3000"]),
    "tiny": ("train.jsonl", ["decoder.width=128", "decoder.layers=2", "decoder.heads=4", "train.steps=3000"]),
}
"""Name -> its training data, and how its recipe differs from that of the package."""


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def captions_of(groups: Iterable[Group]) -> Iterable[dict[str, str]]:
    for group in groups:
        for number, (lang, caption) in enumerate(group.captions):
            if group.photo is not None:
                image = f"{Path(group.photo).stem}.webp"
                yield {"id": f"{image}#{number}", "image": image, "lang": lang, "caption": caption}


def references_of(groups: Iterable[Group]) -> Iterable[dict[str, Any]]:
    for group in groups:
        by_language: dict[str, list[str]] = {}
        for lang, caption in group.captions:
            by_language.setdefault(lang, []).append(caption)
        image = f"{Path(group.photo or '').stem}.webp"
        for lang, references in by_language.items():
            yield {"id": image, "image": image, "lang": lang, "references": references}


def make_data(data: Path, out: Path) -> None:
    photos = out / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    for archive in (data / "flickr8k" / "images.zip", *sorted((data / "coco").glob("images*.zip"))):
        with zipfile.ZipFile(archive) as source:
            source.extractall(photos)
    train = [group for group in read_groups(data, "train") if group.photo is not None]
    coco = {group.photo for part in ("train", "dev", "test") for group in read_coco(data, part)}
    write(out / "train.jsonl", captions_of(train))
    write(out / "flickr8k.jsonl", captions_of(group for group in train if group.photo not in coco))
    for part in ("dev", "test"):
        write(out / f"{part}.jsonl", references_of(read_groups(data, part)))


def train_all(out: Path, device: str, names: list[str]) -> None:
    from caplens.data import SampleFile, with_images
    from caplens.training.captioner.recipe import CaptionerRecipe
    from caplens.training.captioner.train import CaptionerJob, train_captioner
    from caplens.training.recipes.recipe import read_recipe

    for name in names:
        file, changes = CAPTIONERS[name]
        samples = with_images(SampleFile(out / file), out / "photos")
        train_captioner(samples, CaptionerJob("caplens-mini", out / name, read_recipe(CaptionerRecipe, None, changes), 0, device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["data", "train", "measure"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", help="Names of captioners, with commas.")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CAPTIONERS)
    if options.action == "data":
        make_data(options.data, options.out)
    elif options.action == "train":
        train_all(options.out, options.device, names)


if __name__ == "__main__":
    main()

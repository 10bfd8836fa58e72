"""Captioners trained on Flickr8k and COCO, and compared by language: the tables of docs/captioners.md.

python benchmarks/captioners.py data --data DATA --out captioners
    writes photos, train.jsonl (captions of training photos), flickr8k.jsonl and en.jsonl (those of Flickr8k, and in English), and
    test.jsonl and dev.jsonl (photos with references by language)
python benchmarks/captioners.py train --out captioners --device cuda
    trains four captioners of different size or data, and one of them further with metrics as reward
python benchmarks/captioners.py measure --out captioners
    captions test and dev photos with all of them, and prints the tables
"""

import argparse
import json
import time
import zipfile
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from caplens import Sample, SampleFile, caption, score
from caplens.captioners import SearchOptions
from caplens.data import with_images
from caplens.text.subwords import words_of
from caplens.training.captioner.recipe import CaptionerRecipe
from caplens.training.captioner.rewards import repeated_share
from caplens.training.captioner.train import CaptionerJob, train_captioner
from caplens.training.mini.collection import Group, read_coco, read_groups
from caplens.training.recipes.recipe import read_recipe

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
        for number, (lang, text) in enumerate(group.captions):
            if group.photo is not None:
                image = f"{Path(group.photo).stem}.webp"
                yield {"id": f"{image}#{number}", "image": image, "lang": lang, "caption": text}


def references_of(groups: Iterable[Group]) -> Iterable[dict[str, Any]]:
    for group in groups:
        by_language: dict[str, list[str]] = {}
        for lang, text in group.captions:
            by_language.setdefault(lang, []).append(text)
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
    english = (row for row in captions_of(group for group in train if group.photo not in coco) if row["lang"] == "en")
    write(out / "en.jsonl", english)
    for part in ("dev", "test"):
        write(out / f"{part}.jsonl", references_of(read_groups(data, part)))


def train_all(out: Path, device: str, names: list[str]) -> None:
    for name in names:
        file, changes = CAPTIONERS.get(name) or REWARDED[name]
        start = str(out / "mini" / "model") if name in REWARDED else None
        samples = with_images(SampleFile(out / file), out / "photos")
        train_captioner(
            samples, CaptionerJob("caplens-mini", out / name, read_recipe(CaptionerRecipe, None, changes), 0, device, start=start)
        )


REWARDED: dict[str, tuple[str, list[str]]] = {
    "cider": ("en.jsonl", ["reward.steps=260", 'reward.metric="cider"', "reward.photos=32"]),
    "clip": ("train.jsonl", ["reward.steps=300", 'reward.metric="clipscore"', "reward.photos=48", "reward.rate=1e-4"]),
    "clipguard": ("train.jsonl", ["reward.steps=300", 'reward.metric="clipscore"', "reward.photos=48", "reward.rate=1e-4",
                  "reward.repetition=1.0", "reward.likelihood=0.05"]),
}  # fmt: skip
"""Name -> training data, and how `mini` was trained further: with a metric as reward."""
SHIPPED = "clipguard"
"""The one that is caplens-mini-captioner."""
METRICS = ["cider", "bleu4", "clipscore", "refclipscore"]


def captioned(out: Path, name: str, part: str, lang: str, photos: int, **more: Any) -> tuple[list[Sample], float]:
    """Captions of the photos of a part that have references in a language, and how many per second."""
    rows = [sample for sample in SampleFile(out / f"{part}.jsonl", caption_required=False) if sample.lang == lang][:photos]
    start = time.perf_counter()
    samples, _ = caption(
        rows, str(out / name / "model"), images=out / "photos", search=SearchOptions(3), store=out / "store", **more
    )
    return samples, len(samples) / (time.perf_counter() - start)


class Score(NamedTuple):
    """A corpus score times 100, and half the width of its interval."""

    value: float
    half: float


def scored(out: Path, samples: Iterable[Sample]) -> dict[str, Score]:
    result = score(samples, METRICS, images=out / "photos", store=out / "store")
    intervals = {name: result.intervals[name] for name in METRICS}
    return {name: Score(100 * result[name].corpus, 50 * (high - low)) for name, (low, high) in intervals.items()}


def line(name: str, scores: Mapping[str, Score]) -> str:
    return f"| {name} | " + " | ".join(f"{scores[metric].value:.1f} ± {scores[metric].half:.1f}" for metric in METRICS) + " |"


def measure(out: Path, photos: int) -> None:
    known = {caption for file in ("train.jsonl",) for caption in _english(out / file)}
    systems: dict[str, dict[str, dict[str, Score]]] = {}
    langs = sorted({str(sample.lang) for sample in SampleFile(out / "dev.jsonl", caption_required=False)})
    for lang in langs:
        part = "test" if lang in TEST_LANGUAGES else "dev"
        print(f"\n{lang}, {part} photos\n| captioner | " + " | ".join(METRICS) + " |\n|---|---|---|---|---|")
        for name in (*CAPTIONERS, SHIPPED):
            samples, speed = captioned(out, name, part, lang, photos)
            scores = scored(out, samples)
            if name in CAPTIONERS:
                systems.setdefault(lang, {})[name] = scores
            print(line(name, scores), flush=True)
            if lang == "en":
                texts = [str(sample.caption) for sample in samples]
                copied = sum(" ".join(words_of(text)) in known for text in texts) / len(texts)
                print(f"{name}: {speed:.0f} captions/s, {len(set(texts)) / len(texts):.0%} distinct, {copied:.1%} copied")
    print("\nKendall's tau between the orders of captioners, mean over languages")
    for first, second in combinations(METRICS, 2):
        taus = [
            kendalltau(*([scores[m].value for scores in of.values()] for m in (first, second))).statistic
            for of in systems.values()
        ]
        print(f"| {first} | {second} | {np.mean(taus):.2f} |")


def measure_rewards(out: Path, photos: int) -> None:
    print("\nEnglish test photos, with a metric as reward")
    for name in ("mini", *REWARDED):
        samples, _ = captioned(out, name, "test", "en", photos)
        words = [str(sample.caption).split() for sample in samples]
        repeated = np.mean([repeated_share([hash(word) for word in caption]) for caption in words])
        print(f"{line(name, scored(out, samples))} {repeated:.1%} repeated, {np.mean([len(w) for w in words]):.1f} words")
        print("   ", " / ".join(str(sample.caption) for sample in samples[:3]))
    print("\nThe best of ten by CLIPScore")
    for rerank in (None, "clipscore"):
        samples, _ = captioned(out, "mini", "test", "en", photos, nbest=10, rerank=rerank)
        print(line(f"10-best, {rerank or 'most probable'}", scored(out, samples)), flush=True)


def _english(path: Path) -> Iterable[str]:
    return (" ".join(words_of(sample.caption or "")) for sample in SampleFile(path) if sample.lang == "en")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["data", "train", "measure"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", help="Names of captioners, with commas.")
    parser.add_argument("--photos", type=int, default=1000, help="Photos of each language, at most.")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [*CAPTIONERS, *REWARDED]
    if options.action == "data":
        make_data(options.data, options.out)
    elif options.action == "train":
        train_all(options.out, options.device, names)
    else:
        measure_rewards(options.out, options.photos)
        measure(options.out, options.photos)


if __name__ == "__main__":
    main()

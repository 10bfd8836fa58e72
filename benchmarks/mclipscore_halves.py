"""What tuning on ratings gives: `python benchmarks/mclipscore_halves.py --data FLICKR8K --images DIR --train CAPTIONS --out DIR`.

The photos of Flickr8k-CF or Flickr8k-Expert are halved by rng, three times. A model is tuned on the ratings of one half, in
English, Japanese and Turkish, and on captions of training photos; agreement with people is measured on the other half, on both
sets, before and after.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from caplens.benchmarks import get_benchmark
from caplens.data import Sample, SampleFile, with_images
from caplens.embed import Text, open_engine
from caplens.stats import get_coefficient
from caplens.training.recipes.mclipscore import CHOICES, train_mclipscore
from caplens.training.recipes.recipe import read_config
from caplens.training.recipes.tuning import Job

SETS = {"flickr8k-cf": "tau-b", "flickr8k-expert": "tau-c"}
LANGUAGES = ("en", "ja", "tr")
Rated = list[tuple[Sample, float]]


def read_ratings(data: Path, images: Path) -> dict[tuple[str, str], Rated]:
    """(set, language) -> captions with a rating each, by the protocol that papers report."""
    found = {}
    for name in SETS:
        benchmark = get_benchmark(name)
        for lang in LANGUAGES:
            judged = benchmark.load(data, next(iter(benchmark.protocols)), lang)
            found[name, lang] = list(zip(with_images(judged.samples, images), judged.human.tolist(), strict=True))
    return found


def agreement(model: str, ratings: dict[tuple[str, str], Rated], photos: set[str]) -> list[float]:
    engine, made = open_engine(model), []
    for (name, _), rated in ratings.items():
        some = [(sample, value) for sample, value in rated if sample.group in photos]
        pictures = {sample.group: sample.image for sample, _ in some if sample.image is not None}
        captions = dict.fromkeys(sample.caption or "" for sample, _ in some)
        images, texts = engine.images(list(pictures.values())), engine.texts([Text(caption) for caption in captions])
        image_of = dict(zip(pictures, images.vectors[images.index], strict=True))
        text_of = dict(zip(captions, texts.vectors[texts.index], strict=True))
        scores = np.array([float(image_of[sample.group] @ text_of[sample.caption or ""]) for sample, _ in some])
        made.append(100 * get_coefficient(SETS[name])(scores, np.array([value for _, value in some])))
    return made


def as_samples(ratings: dict[tuple[str, str], Rated], name: str, photos: set[str]) -> list[Sample]:
    """The ratings of one set, those of a caption of a photo together."""
    by_caption: dict[tuple[str, str | None, str | None], list[float]] = {}
    first: dict[tuple[str, str | None, str | None], Sample] = {}
    for lang in LANGUAGES:
        for sample, value in ratings[name, lang]:
            if sample.group in photos:
                key = sample.group, sample.caption, lang
                by_caption.setdefault(key, []).append(value)
                first.setdefault(key, sample)
    return [
        Sample(str(number), sample.caption, image=sample.image, lang=key[2], ratings=tuple(by_caption[key]))
        for number, (key, sample) in enumerate(first.items())
    ]


def row(title: str, values: Sequence[Sequence[float]]) -> None:
    cells = [f"{np.mean(some):.1f} ± {np.std(some, ddof=1):.1f}" for some in np.array(values).T]
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "images", "train", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--photos", type=int, default=1500, help="of the training captions, those of this many photos")
    parser.add_argument("--choice", action="append", choices=CHOICES, help="of losses; all without any")
    parser.add_argument("--set", action="append", default=[], help="a change of the recipe")
    chosen = parser.parse_args()
    ratings = read_ratings(chosen.data, chosen.images)
    names = sorted({sample.group for rated in ratings.values() for sample, _ in rated})
    train = list(with_images(SampleFile(chosen.train), chosen.images))
    groups = sorted({sample.group for sample in train})
    kept = set(np.random.default_rng(0).permutation(groups)[: chosen.photos].tolist())
    train = [sample for sample in train if sample.group in kept]
    halves = [set(np.random.default_rng(split).permutation(names)[: len(names) // 2].tolist()) for split in range(3)]
    heads = [f"{'CF' if name.endswith('cf') else 'Expert'} {lang}" for name in SETS for lang in LANGUAGES]
    print(f"| rated | losses | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    others = [set(names) - half for half in halves]
    before = [agreement("caplens-mini", ratings, other) for other in others]
    row("– | none", before)
    for name in SETS:
        for choice in chosen.choice or CHOICES:
            after = []
            for split, (half, other) in enumerate(zip(halves, others, strict=True)):
                config = read_config(None, [f'losses.choice="{choice}"', *chosen.set], recipe="mclipscore")
                # Without ratings one model does for all.
                which = f"{name}-{choice}-{split}" if choice != "contrastive" else choice
                job = Job("caplens-mini", chosen.out / which, config, 0, "cpu")
                made = chosen.out / which / "model"
                if not made.is_dir():
                    made = train_mclipscore(train, as_samples(ratings, name, half), job)
                after.append(agreement(str(made), ratings, other))
            row(f"{name} | {choice}", after)
            gains = np.array(after) - np.array(before)
            print(f"<!-- gains {np.round(gains, 2).tolist()} -->", flush=True)


if __name__ == "__main__":
    main()

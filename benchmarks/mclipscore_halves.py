"""Gains of tuning on ratings: `python benchmarks/mclipscore_halves.py --data FLICKR8K --images DIR --train CAPTIONS --out DIR`.

The photos of Flickr8k-CF and Flickr8k-Expert are split into random halves, three times. A model is tuned on the ratings of one
half, in English, Japanese and Turkish, and on captions of training photos. Agreement with people is measured on the other half,
on both data sets, before and after.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from caplens.benchmarks import get_benchmark
from caplens.data import Sample, SampleFile, with_images
from caplens.embed import Text, open_engine
from caplens.stats import get_coefficient
from caplens.training.recipes.mclipscore import CHOICES, MclipscoreRecipe, train_mclipscore
from caplens.training.recipes.recipe import PRESETS, read_recipe
from caplens.training.recipes.tuning import Job

SETS = {"flickr8k-cf": "tau-b", "flickr8k-expert": "tau-c"}
LANGUAGES = ("en", "ja", "tr")
Rated = list[tuple[Sample, float]]


def read_ratings(data: Path, images: Path) -> dict[tuple[str, str], Rated]:
    """(data set, language) -> captions with one rating each, by the protocol of the papers."""
    ratings = {}
    for name in SETS:
        benchmark = get_benchmark(name)
        for lang in LANGUAGES:
            rated = benchmark.load(data, next(iter(benchmark.protocols)), lang)
            ratings[name, lang] = list(zip(with_images(rated.samples, images), rated.human.tolist(), strict=True))
    return ratings


def agreement(model: str, ratings: dict[tuple[str, str], Rated], photos: set[str]) -> list[float]:
    """Correlation with people, times 100, for each data set and language, on these photos."""
    engine, correlations = open_engine(model), []
    for (name, _), rated in ratings.items():
        pairs = [(sample, value) for sample, value in rated if sample.group in photos]
        images = {sample.group: sample.image for sample, _ in pairs if sample.image is not None}
        captions = dict.fromkeys(sample.caption or "" for sample, _ in pairs)
        image_embeddings = engine.images(list(images.values()))
        text_embeddings = engine.texts([Text(caption) for caption in captions])
        image_vector = dict(zip(images, image_embeddings.vectors[image_embeddings.index], strict=True))
        text_vector = dict(zip(captions, text_embeddings.vectors[text_embeddings.index], strict=True))
        scores = np.array([float(image_vector[sample.group] @ text_vector[sample.caption or ""]) for sample, _ in pairs])
        correlations.append(100 * get_coefficient(SETS[name])(scores, np.array([value for _, value in pairs])))
    return correlations


def as_samples(ratings: dict[tuple[str, str], Rated], name: str, photos: set[str]) -> list[Sample]:
    """The ratings of one data set, grouped by photo, caption and language."""
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


def captions_of_sampled_photos(captions: list[Sample], photos: int) -> list[Sample]:
    """The captions of photos chosen at random."""
    groups = sorted({sample.group for sample in captions})
    subset = set(np.random.default_rng(0).permutation(groups)[:photos].tolist())
    return [sample for sample in captions if sample.group in subset]


def tuned_model(train: list[Sample], rated: list[Sample], job: Job) -> Path:
    """The model of a job; one that is there already is taken as it is."""
    model = job.folder / "model"
    return model if model.is_dir() else train_mclipscore(train, rated, job)


def print_row(title: str, values: Sequence[Sequence[float]]) -> None:
    cells = [f"{np.mean(column):.1f} ± {np.std(column):.1f}" for column in np.array(values).T]
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "images", "train", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--photos", type=int, default=1500, help="how many training photos to use")
    parser.add_argument("--choice", action="append", choices=CHOICES, help="losses.choice of the recipe; all of them by default")
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="the recipe of caplens, or that of the paper")
    parser.add_argument("--splits", type=int, default=3, help="how many random halves")
    parser.add_argument("--set", action="append", default=[], help="change a value of the recipe: SECTION.KEY=VALUE")
    run(parser.parse_args())


def run(arguments: argparse.Namespace) -> None:
    ratings = read_ratings(arguments.data, arguments.images)
    names = sorted({sample.group for rated in ratings.values() for sample, _ in rated})
    train = captions_of_sampled_photos(list(with_images(SampleFile(arguments.train), arguments.images)), arguments.photos)
    drawn = [np.random.default_rng(split).permutation(names) for split in range(arguments.splits)]
    halves = [set(order[: len(names) // 2].tolist()) for order in drawn]
    heads = [f"{'CF' if name.endswith('cf') else 'Expert'} {lang}" for name in SETS for lang in LANGUAGES]
    print(f"| rated | losses | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    others = [set(names) - half for half in halves]
    before = [agreement("caplens-mini", ratings, other) for other in others]
    print_row("– | none", before)
    for name, choice in product(SETS, arguments.choice or CHOICES):
        variant = "" if arguments.preset == PRESETS[0] else arguments.preset
        recipe = read_recipe(MclipscoreRecipe, None, [f'losses.choice="{choice}"', *arguments.set], variant=variant)
        after = []
        for split, (half, other) in enumerate(zip(halves, others, strict=True)):
            # The contrastive loss does not use ratings: one model serves all data sets and splits.
            folder = arguments.out / (f"{name}-{choice}-{split}" if choice != "contrastive" else choice)
            model = tuned_model(train, as_samples(ratings, name, half), Job("caplens-mini", folder, recipe, 0, "cpu"))
            after.append(agreement(str(model), ratings, other))
        print_row(f"{name} | {choice}", after)
        gains = np.array(after) - np.array(before)
        print(f"<!-- gains {np.round(gains, 2).tolist()} -->", flush=True)


if __name__ == "__main__":
    main()

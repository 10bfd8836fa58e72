"""How well 'caplens check' and calibration do: `python benchmarks/check_quality.py --data DATA --images PHOTOS`.

Prints the tables of docs/check.md: what is said of clean captions of Flickr8k's dev and test photos, how often planted faults are
noticed, whether percentiles are right on photos that they were not measured on, and the coverage of intervals of ratings.
"""

import argparse
import lzma
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import caplens
from caplens.api.metrics import metrics_of
from caplens.benchmarks.registry import get_benchmark
from caplens.calibration.levels import measure_levels, with_other_images
from caplens.data import Sample
from caplens.data.image_folder import with_images
from caplens.metrics.options import ScoringOptions
from caplens.metrics.scoring import run_metrics
from caplens.results.calibration import Calibration
from caplens.results.check import CheckResult, Verdict
from caplens.stats.conformal import conformal_bounds
from caplens.text.normalize import without_punctuation
from caplens.training.mini.collection import read_groups

LANGUAGES = "ar bo cs de en fr hi ja mn tr ug zh".split()
SPLITS = 20
OPTIONS = ScoringOptions()
Planter = Callable[[Sample, random.Random], Sample]


def dev_captions(data: Path, images: Path, seed: int = 0) -> list[Sample]:
    """One caption in each language of each dev photo that has one."""
    rng, samples = random.Random(seed), []
    for group in read_groups(data, "dev"):
        for lang in LANGUAGES:
            captions = [text for code, text in group.captions if code == lang]
            if captions:
                photo = Path(str(group.photo)).with_suffix(".webp").name
                samples.append(Sample(f"{Path(photo).stem}-{lang}", rng.choice(captions), image=photo, lang=lang))
    return list(with_images(samples, images))


def test_captions(data: Path, images: Path) -> list[Sample]:
    """The first caption of each test photo in English, Japanese and Turkish."""
    folder = data / "flickr8k"
    names = set((folder / "test.txt").read_text(encoding="utf-8").split())
    samples = []
    for lang, file in {"en": "en", "ja": "ja.mt", "tr": "tr.mt"}.items():
        with lzma.open(folder / "captions" / f"{file}.tsv.xz", "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                photo, number, caption = line.rstrip("\n").split("\t")
                if photo in names and number == "0":
                    image = Path(photo).with_suffix(".webp").name
                    samples.append(Sample(f"{photo}-{lang}", caption, image=image, lang=lang))
    return list(with_images(samples, images))


def shares(result: CheckResult) -> str:
    counts = result.counts()
    return " | ".join(f"{100 * counts[verdict] / len(result.captions):.1f}" for verdict in (Verdict.fix, Verdict.look))


def of_language(samples: Sequence[Sample], lang: str) -> list[Sample]:
    return [sample for sample in samples if sample.lang == lang]


def clean(name: str, samples: Sequence[Sample], calibration: Calibration | None = None) -> None:
    """What is said of captions that nobody damaged."""
    result = caplens.check(samples, calibration=calibration)
    print(f"| {name}, all | {len(samples):,} | {shares(result)} |")
    for lang in LANGUAGES:
        captions = [caption for caption in result if caption.lang == lang]
        if captions:
            print(f"| {name}, {lang} | {len(captions):,} | {shares(replace(result, captions=captions))} |")
    print("\n", Counter(f"{fault.kind}: {fault.verdict}" for caption in result for fault in caption.faults).most_common(), "\n")


def halves(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """The captions of every second photo, and the others."""
    photos = sorted({str(sample.image) for sample in samples})
    first = set(photos[::2])
    return [s for s in samples if str(s.image) in first], [s for s in samples if str(s.image) not in first]


def percentiles(samples: Sequence[Sample]) -> None:
    """The share of captions of one half of the photos below percentiles that were measured on the other half."""
    print("\n| language | good: below 5 | 50 | 95 | chance: below 5 | 50 | 95 |\n|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(1)
    metric = metrics_of("score", ["clipscore"], None, OPTIONS)
    for lang in LANGUAGES:
        first, second = halves(of_language(samples, lang))
        below = np.zeros((2, 3))
        for measured, held_out in ((first, second), (second, first)):
            levels = measure_levels(measured, metric, draws=5).metrics["clipscore"].languages[lang]
            own = run_metrics(held_out, metric)["clipscore"].values
            other = run_metrics(with_other_images(held_out, rng), metric)["clipscore"].values
            for row, values in enumerate((levels.good.percentile(own), levels.chance.percentile(other))):
                below[row] += [50 * np.nanmean(values < share) for share in (5, 50, 95)]
        print(f"| {lang} | " + " | ".join(f"{share:.1f}" for share in below.ravel()) + " |")


FILE_NAMES = ("IMG_2041.jpg", "DSC00017.JPG", "photo.png", "Screenshot 2024-01-02", "PXL_20230101_120000.jpg", "scan0003.tif")
PLACEHOLDERS = (
    "image",
    "TODO",
    "alt text",
    "Lorem ipsum dolor sit amet, consectetur",
    "photo of",
    "n/a",
    "untitled",
    "Bild",
    "图片",
)


def faults(samples: Sequence[Sample]) -> dict[str, tuple[str, Planter]]:
    """What is planted -> the kind of fault that has to be named, and what plants it."""
    others = {lang: [s.caption or "" for s in of_language(samples, lang)] for lang in LANGUAGES}
    photos = sorted({str(sample.image) for sample in samples})

    def text(change: Callable[[str, random.Random], str]) -> Planter:
        return lambda sample, rng: replace(sample, caption=change(sample.caption or "", rng))

    def other_language(sample: Sample, rng: random.Random) -> Sample:
        script = {"ar": "a", "ug": "a", "hi": "h", "bo": "b", "zh": "z", "ja": "z", "mn": "m"}
        near = [lang for lang in LANGUAGES if lang != sample.lang and script.get(lang) == script.get(str(sample.lang))]
        return replace(sample, caption=rng.choice(others[rng.choice(near)])) if near else sample

    def other_script(sample: Sample, rng: random.Random) -> Sample:
        # Captions in Latin letters for the others, and in Devanagari for these.
        lang = "hi" if sample.lang in ("cs", "de", "en", "fr", "tr") else "en"
        return replace(sample, caption=rng.choice(others[lang]))

    def other_photo(sample: Sample, rng: random.Random) -> Sample:
        return replace(sample, image=rng.choice([photo for photo in photos if photo != sample.image]))

    return {
        "nothing": ("empty", text(lambda _, rng: rng.choice(["", "  ", "-", "..."]))),
        "file name": ("file name", text(lambda _, rng: rng.choice(FILE_NAMES))),
        "placeholder": ("placeholder", text(lambda _, rng: rng.choice(PLACEHOLDERS))),
        "markup or entity": ("markup", text(_marked_up)),
        "words three times": ("repeated words", text(_repeated)),
        "cut off": ("cut off", _cut),
        "one word": ("length", _one_word),
        "five times as long": ("length", lambda sample, rng: _long(sample, rng, others)),
        "another writing system": ("wrong script", other_script),
        "another language, same letters": ("wrong language or wrong script", other_language),
        "UTF-8 read as Windows-1252": ("encoding damage", text(_mojibake)),
        "caption of another photo": ("wrong image", other_photo),
    }


def _marked_up(caption: str, rng: random.Random) -> str:
    words = caption.split(" ")
    place = rng.randrange(len(words))
    words[place] = rng.choice(["<b>{}</b>", "{}&nbsp;", "&quot;{}&quot;", "<p>{}", "[{}](http://x.org)"]).format(words[place])
    return " ".join(words)


def _repeated(caption: str, rng: random.Random) -> str:
    words = caption.split(" ")
    if len(words) < 3:
        size = max(2, len(caption) // 4)
        start = rng.randrange(max(1, len(caption) - size))
        return caption[: start + size] + caption[start : start + size] * 2 + caption[start + size :]
    place = rng.randrange(len(words) - 1)
    return " ".join([*words[: place + 2], *words[place : place + 2] * 2, *words[place + 2 :]])


def _cut(sample: Sample, rng: random.Random) -> Sample:
    """After an article, a preposition or a comma, as where a field is too short for a text; where there is none, unchanged."""
    caption = sample.caption or ""
    ends = {
        "en": " a | the | in | with ", "de": " ein | der | mit | und ", "fr": " un | de | dans | avec ",
        "cs": " v | na | s | a ", "tr": " bir | ve ", "ar": " في | على | مع ", "hi": " एक | और | के | की ",
        "ja": "を|が|の|に", "zh": "在|和|一个",
    }  # fmt: skip
    places = [
        caption.index(end, 1) + len(end) for end in ends.get(str(sample.lang), "").split("|") if end and end in caption[1:-8]
    ]
    return replace(sample, caption=caption[: rng.choice(places)].rstrip()) if places else sample


def _one_word(sample: Sample, rng: random.Random) -> Sample:
    if sample.lang in ("zh", "ja", "bo"):
        return replace(sample, caption=(sample.caption or "")[:2])
    return replace(sample, caption=max((sample.caption or "").split(" "), key=len).strip(".,"))


def _long(sample: Sample, rng: random.Random, others: dict[str, list[str]]) -> Sample:
    texts = [sample.caption or "", *rng.sample(others[str(sample.lang)], 40)]
    longest = max(map(len, others[str(sample.lang)]))
    caption = ""
    while len(caption) < 1.6 * longest:
        caption += texts.pop() + " "
    return replace(sample, caption=caption.strip())


def _mojibake(caption: str, _: random.Random) -> str:
    return caption.encode().decode("cp1252", errors="replace")


def planted(samples: Sequence[Sample], calibration: Calibration | None) -> None:
    """How often each kind of fault is noticed, where 1,000 captions have it among all the others."""
    print("\n| planted | captions | noticed | with the right reason | to fix |\n|---|---|---|---|---|")
    for name, (kind, plant) in faults(samples).items():
        rng = random.Random(0)
        chosen = set(rng.sample(range(len(samples)), 1000))
        damaged = [plant(sample, rng) if row in chosen else sample for row, sample in enumerate(samples)]
        ids = {
            sample.id
            for sample, before in zip(damaged, samples, strict=True)
            if (sample.caption, sample.image) != (before.caption, before.image)
        }
        print_row(name, kind, ids, caplens.check(damaged, calibration=calibration))


def _words(sample: Sample) -> int:
    return len(without_punctuation(sample.caption or "").split())


def duplicates(samples: Sequence[Sample]) -> None:
    """The same caption on two photos, and one that differs in a word."""
    for name, change in (("the caption of another photo, copied", False), ("copied, a word changed", True)):
        rng = random.Random(0)
        every = [row for row, sample in enumerate(samples) if not change or _words(sample) >= 8]
        damaged, ids = list(samples), set()
        for lang in LANGUAGES:
            rows = [row for row in every if samples[row].lang == lang]
            own = rng.sample(rows, min(160, len(rows)) // 2 * 2)
            for target, source in zip(own[::2], own[1::2], strict=True):
                damaged[target] = replace(samples[target], caption=_copied(samples[source], rng, change=change))
                ids.add(samples[target].id)
        print_row(name, "duplicate", ids, caplens.check(damaged))


def _copied(sample: Sample, rng: random.Random, *, change: bool) -> str:
    words = (sample.caption or "").split(" ")
    if change:
        words[rng.randrange(len(words))] = words[0]
    return " ".join(words)


def print_row(name: str, kind: str, ids: set[str], result: CheckResult) -> None:
    """How often a fault is noticed in the captions that have it, with its own reason, and to be fixed."""
    found = [caption for caption in result if caption.id in ids]
    counts = (
        sum(caption.verdict is not Verdict.fine for caption in found),
        sum(any(fault.kind in kind for fault in caption.faults) for caption in found),
        sum(caption.verdict is Verdict.fix for caption in found),
    )
    print(f"| {name} | {len(ids)} | " + " | ".join(f"{100 * count / len(ids):.1f}" for count in counts) + " |", flush=True)


def coverage(data: Path, images: Path) -> None:
    """Of intervals of ratings on the photos that they were not measured on, over 20 splits by photo."""
    print("\n| ratings | nominal | covered (standard deviation over splits) | mean width |\n|---|---|---|---|")
    for name in ("flickr8k-expert", "flickr8k-cf"):
        benchmark = get_benchmark(name)
        loaded = benchmark.load(benchmark.home(data / "flickr8k"), next(iter(benchmark.protocols)), "en")
        samples = list(benchmark.located(loaded.samples, images))
        values = run_metrics(samples, metrics_of("score", ["clipscore"], None, OPTIONS))["clipscore"].values
        human = np.nanmean(loaded.human.reshape(len(samples), -1), axis=1)
        kept = np.flatnonzero(~np.isnan(values) & ~np.isnan(human))
        scores, ratings, samples = values[kept], human[kept], [samples[row] for row in kept]
        groups = np.array([sample.group for sample in samples])
        photos = np.unique(groups)
        for nominal in (0.8, 0.9, 0.95):
            covered, widths = [], []
            for seed in range(SPLITS):
                measured = set(np.random.default_rng(seed).permutation(photos)[: len(photos) // 2].tolist())
                inside = np.array([group in measured for group in groups])
                bounds = conformal_bounds(scores[inside], ratings[inside], groups[inside].tolist(), nominal, seed)
                low, high = bounds.interval(scores[~inside])
                covered.append(100 * np.mean((ratings[~inside] >= low) & (ratings[~inside] <= high)))
                widths.append(np.mean(high - low))
            print(f"| {name} | {100 * nominal:g} | {np.mean(covered):.1f} ({np.std(covered):.1f}) | {np.mean(widths):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    parser.add_argument("--images", type=Path, required=True, help="the folder of Flickr8k's photos")
    options = parser.parse_args()
    dev = dev_captions(options.data, options.images)
    print("| captions | count | to fix, % | to look at, % |\n|---|---|---|---|")
    clean("dev photos", dev)
    clean("test photos", test_captions(options.data, options.images))
    first, second = halves(dev)
    levels = caplens.calibrate(first, ["clipscore"])
    clean("dev photos, levels of the other half", second, levels)
    planted(dev, None)
    duplicates(dev)
    percentiles(dev)
    coverage(options.data, options.images)


if __name__ == "__main__":
    main()

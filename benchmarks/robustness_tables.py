"""The tables of docs/robustness.md: `python benchmarks/robustness_tables.py --data DATA --images PHOTOS --model MODEL`.

How far CLIPScore drops, and how often it drops, when captions are perturbed: the first caption of each photo of Flickr8k, of test
photos in English and Japanese and of dev photos in German and Chinese, as mean and standard deviation over seeds.
"""

import argparse
from pathlib import Path

import numpy as np

import caplens
from caplens.data import Sample
from caplens.perturbation import PERTURBATIONS, PROTOCOLS
from caplens.training.mini.collection import read_groups

LANGUAGES = {"en": "test", "ja": "test", "de": "dev", "zh": "dev"}
KINDS = [*PERTURBATIONS, "all"]


def first_captions(data: Path) -> list[Sample]:
    """The first caption of each photo in each language."""
    samples = []
    for lang, part in LANGUAGES.items():
        for group in read_groups(data, part):
            text = next((text for language, text in group.captions if language == lang), None)
            if text is not None and group.photo is not None:
                samples.append(Sample(f"{lang} {group.photo}", text, image=group.photo, lang=lang))
    return samples


def table(samples: list[Sample], images: Path, model: str, protocol: str, seeds: int) -> None:
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        result = caplens.robustness(samples, ["clipscore"], images=images, model=model, protocol=protocol, seed=seed, resamples=0)
        for effect in result.effects:
            found.setdefault((effect.lang, effect.perturbation), []).append((effect.drop, effect.accuracy))
    left = {name: result.unchanged.get(name, 0) + result.skipped.get(name, 0) for name in result.skipped}
    counts = ", ".join(f"{name} {count:,}" for name, count in left.items() if count)
    print(f"\n{model}, protocol {protocol}, {seeds} seeds; unchanged or skipped with the last: {counts or 'none'}\n")
    print(f"| | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 1)}")
    for lang in (*LANGUAGES, "all"):
        cells = []
        for kind in KINDS:
            drop, noticed = np.array(found[lang, kind]).T
            cells.append(f"{drop.mean():.1f} ± {drop.std():.1f} ({noticed.mean():.1f} ± {noticed.std():.1f})")
        print(f"| {lang} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    parser.add_argument("--images", type=Path, required=True, help="the folder of Flickr8k's photos")
    parser.add_argument("--model", action="append", required=True, help="a model; may be given several times")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    captions = first_captions(options.data)
    for name in options.model:
        for rule in PROTOCOLS:
            table(captions, options.images, name, rule, options.seeds)

"""Comparing systems beside sacrebleu: `python benchmarks/comparison_speed.py --data DATA`.

Five systems with captions of 1,000 photos of Flickr8k, made from a reference by leaving words out: six metrics with intervals and
tests against a baseline, from captions to the table. Then BLEU alone, beside sacrebleu's paired approximate randomisation on its
own BLEU with as many permutations (10,000), both from tokenized captions, one after the other in one run.
"""

import argparse
import random
import time
from pathlib import Path

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from translation_model import captions, stem

import caplens

METRICS = ["bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider"]
LEFT_OUT = {"base": 0.12, "a": 0.05, "b": 0.1, "c": 0.2, "d": 0.3}
"""System -> the share of words that it leaves out."""


def make_systems(data: Path, images: int) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Captions of each system, and references."""
    by_photo: dict[str, list[str]] = {}
    for (photo, _), text in captions(data / "flickr8k" / "captions", "en").items():
        by_photo.setdefault(stem(photo), []).append(text)
    rng = random.Random(0)
    photos = rng.sample(sorted(by_photo), images)

    def shortened(text: str, share: float) -> str:
        return " ".join(word for word in text.split() if rng.random() > share) or "a"

    systems = {name: {photo: shortened(by_photo[photo][0], share) for photo in photos} for name, share in LEFT_OUT.items()}
    return systems, {photo: by_photo[photo][1:] for photo in photos}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    parser.add_argument("--images", type=int, default=1000)
    arguments = parser.parse_args()
    systems, references = make_systems(arguments.data, arguments.images)
    caplens.compare(systems, ["bleu4"], references=references, baseline="base", resamples=10)
    start = time.perf_counter()
    caplens.compare(systems, METRICS, references=references, baseline="base")
    print(f"{len(systems)} systems, {len(METRICS)} metrics, {arguments.images} images: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    caplens.compare(systems, ["bleu4"], references=references, baseline="base", tokenizer="space", resamples=1)
    ours = time.perf_counter() - start
    streams = [list(column) for column in zip(*references.values(), strict=True)]
    named = [(name, list(texts.values())) for name, texts in systems.items()]
    start = time.perf_counter()
    PairedTest(named, {"BLEU": BLEU(tokenize="none")}, streams, test_type="ar", n_samples=10_000)()
    theirs = time.perf_counter() - start
    print(f"BLEU with tests against a baseline: caplens {ours:.2f} s, sacrebleu {theirs:.2f} s, a ratio of {theirs / ours:.1f}")


if __name__ == "__main__":
    main()

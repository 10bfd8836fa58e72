"""How often an estimate prefers a translation to damaged ones: `python benchmarks/quality_estimation.py --data DATA`.

Captions of Flickr8k's dev photos in ten languages, which caplens-mini was not trained on, beside their English originals. Each is
compared with the same translation without half of its words, without one word, with every word doubled, with one word doubled,
with its words in random order, with two words swapped, with the translation of another caption, and with another English caption.
"""

import argparse
import random
from pathlib import Path

import numpy as np
from translation_model import captions, stem

from caplens import Sample, score

ORIGINS = ("ja.mt", "tr.mt", "zh.mt", "hi.mt", "mn.mt", "ug.mt", "bo.mt")
"""Translations that are numbered as the English captions."""
DAMAGES = ("half", "a word less", "doubled", "a word twice", "any order", "two swapped", "another caption", "English")


def words_of(text: str) -> tuple[list[str], str]:
    """The words, or the characters where there are no spaces, and what joins them."""
    return (text.split(" "), " ") if " " in text else (list(text), "")


def damaged(text: str, other: str, english: str, rng: random.Random) -> list[str]:
    """The text with each kind of damage."""
    words, space = words_of(text)
    place = rng.randrange(len(words))
    first, second = rng.sample(range(len(words)), 2)
    swapped = list(words)
    swapped[first], swapped[second] = words[second], words[first]
    forms = [
        words[: len(words) // 2],
        words[:place] + words[place + 1 :],
        [word for word in words for _ in range(2)],
        [*words[: place + 1], *words[place:]],
        rng.sample(words, len(words)),
        swapped,
    ]
    return [*(space.join(form) for form in forms), other, english]


def measure(data: Path, origin: str, metric: str, count: int) -> np.ndarray:
    """For each kind of damage the share of translations that are preferred to it."""
    photos = {stem(name) for name in (data / "flickr8k" / "dev.txt").read_text(encoding="utf-8").split()}
    english, translated = (captions(data / "flickr8k" / "captions", name) for name in ("en", origin))
    keys = [key for key in english if key in translated and stem(key[0]) in photos and len(words_of(translated[key])[0]) > 3]
    rng = random.Random(0)
    keys = rng.sample(keys, min(count, len(keys)))
    samples = []
    for number, key in enumerate(keys):
        other = keys[(number + 1) % len(keys)]
        forms = [translated[key], *damaged(translated[key], translated[other], english[other], rng)]
        samples += [
            Sample(f"{number} {form}", text, source=english[key], lang=origin.split(".")[0]) for form, text in enumerate(forms)
        ]
    values = score(samples, [metric], keep_store=False, resamples=0)[metric].values.reshape(len(keys), -1)
    # The same words in the same order are the same text, which nothing can tell apart.
    same = np.array([sample.caption for sample in samples]).reshape(len(keys), -1)
    differs = same[:, 1:] != same[:, :1]
    return np.array([(values[rows, 0] > values[rows, 1 + kind]).mean() for kind, rows in enumerate(differs.T)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    parser.add_argument("--metric", default="mini-qe")
    parser.add_argument("--count", type=int, default=500, help="captions of each language")
    arguments = parser.parse_args()
    print(f"| {arguments.metric} | {' | '.join(DAMAGES)} |\n|---|{'---|' * len(DAMAGES)}")
    for origin in ORIGINS:
        shares = measure(arguments.data, origin, arguments.metric, arguments.count)
        print(f"| {origin.split('.')[0]} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()

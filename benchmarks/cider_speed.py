"""Tokenizing and CIDEr-D, compared with pycocoevalcap in one run: `python benchmarks/cider_speed.py [--data DIR]`.

Prints seconds, their ratio, and the peak memory of a process that runs only caplens. The tokenizer of pycocoevalcap needs Java.
"""

import argparse
import sys
import time
from pathlib import Path

import captions
import memory
import numpy as np

from caplens import Sample, score


def ours(entries: list[captions.Entry]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    samples = (Sample(str(number), candidate, tuple(references)) for number, (candidate, references) in enumerate(entries))
    values = score(samples, ["cider"], resamples=0)["cider"].values
    return time.perf_counter() - start, values


def peer(entries: list[captions.Entry]) -> tuple[float, float, np.ndarray]:
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    start = time.perf_counter()
    tokenizer = PTBTokenizer()
    gts = tokenizer.tokenize({n: [{"caption": text} for text in texts] for n, (_, texts) in enumerate(entries)})
    res = tokenizer.tokenize({n: [{"caption": candidate}] for n, (candidate, _) in enumerate(entries)})
    middle = time.perf_counter()
    _, values = Cider().compute_score(gts, res)
    return middle - start, time.perf_counter() - middle, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=40_000)
    parser.add_argument("--data", type=Path, help="the folder with multi30k/ and flickr8k/, for real captions")
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    entries = captions.real(options.images, options.data) if options.data else captions.synthetic(options.images)
    if options.only_ours:
        ours(entries)
        return
    tokenizing, scoring, expected = peer(entries)
    # Twice, because the first call also fills the tokenizer's cache of words.
    first, values = ours(entries)
    second, _ = ours(entries)
    differences = np.abs(values - expected)
    print(f"{len(entries):,} images, {sum(len(texts) for _, texts in entries):,} references")
    print(f"pycocoevalcap: tokenizer {tokenizing:.1f} s + CIDEr {scoring:.1f} s = {tokenizing + scoring:.1f} s")
    print(f"caplens:       {first:.2f} s ({second:.2f} s with cached words)")
    print(f"ratio:         {(tokenizing + scoring) / first:.1f} ({(tokenizing + scoring) / second:.1f})")
    different = np.count_nonzero(differences > 1e-6)
    print(f"largest difference of a score {differences.max():.1e}; {different} scores differ by more than 1e-6")
    peak = memory.peak_of([sys.executable, __file__, "--only-ours", *sys.argv[1:]])
    print(f"peak memory of caplens alone, with the captions: {peak:.2f} GiB")


if __name__ == "__main__":
    main()

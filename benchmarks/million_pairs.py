"""Peak memory and time of CLIPScore for a million pairs over 100,000 images: `python benchmarks/million_pairs.py`.

The model is a stand-in that costs nothing: it returns 512 random numbers. So everything else is measured: reading, hashing, the
store on disk, and cosines. It is run twice, each time in a new process; the second run finds every vector in the store.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import captions
import memory
import numpy as np
from PIL import Image

import caplens
from caplens.backbones import Backbone, Tokens
from caplens.backbones.base import normalized
from caplens.embed import Engine, Store


class StandIn(Backbone):
    name, fingerprint, dim, max_tokens = "stand-in", "0" * 64, 512, 77

    def pixels(self, image: Any) -> Any:
        return np.asarray(image)

    def encode_pixels(self, batch: Any) -> Any:
        return self._vectors([array.tobytes() for array in batch])

    def tokenize(self, texts: Any, langs: Any = None) -> list[Tokens]:
        return [Tokens([hash(text)], False) for text in texts]

    def encode_ids(self, batch: Any) -> Any:
        return self._vectors(batch)

    def _vectors(self, contents: Any) -> Any:
        return normalized(np.random.default_rng(0).normal(size=(len(contents), self.dim)))


def write(folder: Path, pairs: int, images: int) -> None:
    (folder / "photos").mkdir()
    for number in range(images):
        color = (number % 256, number // 256 % 256, number // 65536)
        Image.new("RGB", (8, 8), color).save(folder / "photos" / f"{number}.bmp")
    entries = captions.synthetic(images)
    with (folder / "captions.jsonl").open("w", encoding="utf-8") as out:
        for row in range(pairs):
            image = row % images
            caption = f"{entries[(row * 7919) % images][0]} {row}"
            line = {"id": f"row-{row}", "image": f"{image}.bmp", "caption": caption, "references": entries[image][1]}
            out.write(json.dumps(line) + "\n")


def score(folder: Path, metrics: list[str]) -> None:
    start = time.perf_counter()
    engine = Engine(StandIn(), Store(folder / "store"), batch_size=256)
    results = caplens.score(folder / "captions.jsonl", metrics, images=folder / "photos", model=engine, resamples=0)
    assert not results.failed
    seconds = time.perf_counter() - start
    count = len(results.ids)
    print(f"{count:,} pairs with {', '.join(metrics)}: {seconds:.0f} s, {count / seconds:,.0f} pairs/s", end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--metric", action="append")
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    metrics = options.metric or ["clipscore"]
    if options.score:
        score(options.score, metrics)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.pairs, options.images)
        command = [sys.executable, __file__, "--score", folder, *(f"--metric={name}" for name in metrics)]
        for run in ("first", "from the store"):
            peak = memory.peak_of(command)
            size = sum(path.stat().st_size for path in (Path(folder) / "store").iterdir())
            print(f", {run}; peak memory {peak:.2f} GiB, store {size / 1e9:.2f} GB", flush=True)


if __name__ == "__main__":
    main()

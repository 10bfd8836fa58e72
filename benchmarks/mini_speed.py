"""The speed of caplens-mini on the CPU: `python benchmarks/mini_speed.py --images PHOTOS --captions FILE.tsv.xz`.

Images and captions per second of the engine, from files to vectors, and of decoding, of tokenizing and of the bare forward pass
alone; and the seconds from starting Python to the scores of ten images.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from caplens.backbones import load_backbone
from caplens.data.records import read_fields
from caplens.embed import Engine, Text
from caplens.embed.images import decode

START = """
import caplens
caplens.score({file!r}, "clipscore", images={images!r}, resamples=0)
"""


def rate(function: Callable[[], object], items: int, times: int = 3) -> float:
    """Items per second, the median of several runs."""
    rates = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        rates.append(items / (time.perf_counter() - start))
    return float(np.median(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--captions", type=Path, required=True, help="a file with lines photo<TAB>number<TAB>caption")
    parser.add_argument("--count", type=int, default=2000, help="images; ten times as many captions")
    options = parser.parse_args()
    mini = load_backbone("caplens-mini")
    files = sorted(options.images.iterdir())[: options.count]
    texts = list(dict.fromkeys(fields[2] for _, fields in read_fields(options.captions, 3)))[: 10 * options.count]

    pixels = [mini.pixels(decode(file)) for file in files[:64]]
    mini.encode_texts(texts[:64])
    ids = sorted((tokens.ids for tokens in mini.tokenize(texts)), key=len)
    batches = [ids[start : start + 64] for start in range(0, len(ids), 64)]
    rows = [
        ("images/s, files to vectors", rate(lambda: Engine(mini).images(files), len(files))),
        (
            "images/s, decoding and resizing, one thread",
            rate(lambda: [mini.pixels(decode(file)) for file in files[:500]], len(files[:500])),
        ),
        (
            "images/s, forward pass",
            rate(lambda: [mini.encode_pixels(np.stack(pixels[:32])) for _ in range(10)], 10 * len(pixels[:32])),
        ),
        ("captions/s, texts to vectors", rate(lambda: Engine(mini).texts([Text(text) for text in texts]), len(texts))),
        ("captions/s, tokenizing", rate(lambda: mini.tokenize(texts), len(texts))),
        ("captions/s, forward pass", rate(lambda: [mini.encode_ids(batch) for batch in batches], len(texts))),
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ten.jsonl"
        samples = [
            {"id": photo.name, "image": photo.name, "caption": text} for photo, text in zip(files, texts[:10], strict=False)
        ]
        file.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
        code = START.format(file=str(file), images=str(options.images))
        seconds = []
        for number in range(3):
            environment = {"CAPLENS_CACHE": f"{folder}/cache{number}", "PATH": ""}
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            seconds.append(time.perf_counter() - start)
    for what, value in rows:
        print(f"| {what} | {value:,.0f} |")
    print(f"| seconds from starting Python to the scores of ten images | {np.median(seconds):.2f} |")


if __name__ == "__main__":
    main()

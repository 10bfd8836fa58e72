"""The embedding engine, compared with the bare forward pass: `python benchmarks/engine_speed.py`, on a GPU.

For each model (random weights): images/s and texts/s of the forward pass on tensors that are already on the device; images/s of
decoding and resizing JPEGs without a model; and of the engine, from JPEG files to vectors in the store.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import captions
import models
import numpy as np
import photos

from caplens.backbones import load_backbone
from caplens.backbones.transform import ImageTransform
from caplens.embed import Engine, Store, Text
from caplens.embed.images import decode, image_key

MAKERS: dict[str, Callable[[Path, list[str]], str]] = {
    "ViT-B/32": models.vit_b_32,
    "ViT-H/14 + XLM-R-large": models.vit_h_14_xlm_roberta_large,
}


def rate(function: Callable[[], Any], items: int, device: str) -> float:
    import torch

    start = time.perf_counter()
    function()
    if device != "cpu":
        torch.cuda.synchronize()
    return items / (time.perf_counter() - start)


def bare(forward: Callable[[], Any], items: int, seconds: float, device: str) -> float:
    """Items per second of a repeated forward pass, after a warm-up; the median of five measurements."""
    import torch

    with torch.inference_mode():
        for _ in range(3):
            forward()
        once = items / rate(forward, items, device)
        times = max(1, int(seconds / 5 / once))
        return float(np.median([rate(lambda: [forward() for _ in range(times)], items * times, device) for _ in range(5)]))


def preprocess(path: str, transform: ImageTransform) -> int:
    """What the engine does with an image before the model runs."""
    image_key(path)
    return len(transform(decode(path)))


def decoding_rate(pool: Executor, paths: list[str], transform: ImageTransform, **options: int) -> float:
    with pool:
        list(pool.map(partial(preprocess, transform=transform), paths[:64], **options))
        start = time.perf_counter()
        list(pool.map(partial(preprocess, transform=transform), paths, **options))
        return len(paths) / (time.perf_counter() - start)


def distinct(folder: Path, count: int) -> list[str]:
    """Write files that differ, so that each is encoded: a thousand photos, repeated with a number appended to the bytes."""
    originals = [Path(path).read_bytes() for path in photos.make(folder / "originals", min(count, 1000))]
    for number in range(count):
        (folder / f"{number:06}.jpg").write_bytes(originals[number % len(originals)] + str(number).encode())
    return [str(folder / f"{number:06}.jpg") for number in range(count)]


def measure(name: str, model: str, paths: list[str], texts: list[str], options: argparse.Namespace, root: Path) -> None:
    import torch

    backbone: Any = load_backbone(model, device=options.device, dtype=options.dtype)
    device, size = backbone.device, options.batch
    pixels = torch.randint(0, 256, (size, 3, 224, 224), device=device).float() / 128 - 1
    pixels = pixels.to(backbone.loaded.network.dtype)
    images_bare = bare(lambda: backbone.image_features(pixels, None), size, options.seconds, device)
    # Texts of medium length: the engine sorts texts by length, so its batches have all lengths.
    count = 4 * size
    ids = sorted((tokens.ids for tokens in backbone.tokenize(texts[: 2 * count])), key=len)[count // 2 : count // 2 + count]
    inputs = {key: value.clone() for key, value in backbone._text_inputs(ids).items()}
    texts_bare = bare(lambda: backbone.loaded.network.get_text_features(**inputs), count, options.seconds, device)

    threads = decoding_rate(ThreadPoolExecutor(os.cpu_count()), paths[:8000], backbone.transform)
    processes = decoding_rate(ProcessPoolExecutor(os.cpu_count()), paths[:8000], backbone.transform, chunksize=32)
    engine = Engine(backbone, Store(root / "store"), batch_size=size if device == "cpu" else None)
    warm = len(paths) // 8
    engine.prepare(paths[:warm], [Text(text) for text in texts[:warm]])
    images_engine = rate(lambda: engine.prepare(paths[warm:], []), len(paths) - warm, device)
    texts_engine = rate(lambda: engine.prepare([], [Text(text) for text in texts[warm:]]), len(texts) - warm, device)
    limit = min(images_bare, max(threads, processes))
    cells = [
        f"{name}, {options.dtype}, {device}",
        f"{images_bare:,.0f}",
        f"{threads:,.0f} ({processes:,.0f})",
        f"{images_engine:,.0f}",
        f"{100 * images_engine / images_bare:.0f}% ({100 * images_engine / limit:.0f}%)",
        f"{texts_bare:,.0f}",
        f"{texts_engine:,.0f}",
        f"{100 * texts_engine / texts_bare:.0f}%",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--images", type=int, default=16_000)
    parser.add_argument("--texts", type=int, default=60_000)
    parser.add_argument("--seconds", type=float, default=10, help="for how long the bare forward pass is timed")
    parser.add_argument("--model", action="append", choices=list(MAKERS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        paths = distinct(root / "photos", options.images)
        texts = list({text for entry in captions.synthetic(options.texts // 6 + 1) for text in (entry[0], *entry[1])})[
            : options.texts
        ]
        mean = sum(map(os.path.getsize, paths[:1000])) / len(paths[:1000])
        print(f"{len(paths):,} JPEGs of 500 x 375, {mean:,.0f} bytes on average; {os.cpu_count()} cores")
        columns = ["model", "images/s, bare", "decoding, threads (processes)", "engine", "of bare (of the slower)"]
        print(f"| {' | '.join([*columns, 'texts/s, bare', 'engine', 'of bare'])} |")
        print("|---|---|---|---|---|---|---|---|")
        for name in options.model or MAKERS:
            measure(name, MAKERS[name](root / name.replace("/", ""), texts), paths, texts, options, root)


if __name__ == "__main__":
    main()

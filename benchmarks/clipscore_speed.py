"""CLIPScore and RefCLIPScore of Flickr8k-Expert, compared with common alternatives: `python benchmarks/clipscore_speed.py`.

16,992 rows about 1,000 photos with 5 references each, ViT-B/32 with random weights, on the CPU. The peers are a loop that encodes
photo, caption and references of every row, as published scripts do, and torchmetrics' CLIPScore in batches of 32 rows. Both are
timed on a few rows, and their times are extrapolated.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import captions
import models
import numpy as np
import photos
from PIL import Image

import caplens
from caplens.benchmarks.datasets.flickr8k_expert import Flickr8kExpert
from caplens.data import Sample
from caplens.data.image_folder import with_images
from caplens.embed import open_engine

PROMPT = "A photo depicts "


def synthetic_samples(folder: Path, rows: int = 16_992, images: int = 1_000) -> list[Sample]:
    entries, paths = captions.synthetic(images), photos.make(folder, images)
    pairs = [(row // 3 % images, (row // 3 * 7919) % images) for row in range(rows)]
    return [
        Sample(str(row), entries[other][0], tuple(entries[image][1]), image=paths[image], lang="en")
        for row, (image, other) in enumerate(pairs)
    ]


def timed(function: Any) -> tuple[float, Any]:
    """The seconds that a function takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measured(backbone: Any) -> dict[str, list[float]]:
    """Method of the backbone -> seconds and items of its forward passes, filled while the backbone is used."""
    spent: dict[str, list[float]] = {"encode_pixels": [0.0, 0], "encode_ids": [0.0, 0]}

    def timing(inner: Any, total: list[float]) -> Any:
        def run(batch: Any) -> Any:
            seconds, vectors = timed(lambda: inner(batch))
            total[0] += seconds
            total[1] += len(batch)
            return vectors

        return run

    for name, total in spent.items():
        setattr(backbone, name, timing(getattr(backbone, name), total))
    return spent


def row_by_row(folder: Path, samples: list[Sample]) -> np.ndarray:
    """The loop of published scripts: for each row read the photo, and encode it, the caption and the references."""
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    network, tokenizer = CLIPModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    scores = []
    with torch.inference_mode():
        for sample in samples:
            pixels = processor(Image.open(sample.image).convert("RGB"), return_tensors="pt")["pixel_values"]
            image = network.get_image_features(pixels)
            texts = [PROMPT + text for text in (sample.caption, *sample.references)]
            tokens = tokenizer(texts, return_tensors="pt", padding="max_length", max_length=77, truncation=True)
            text = network.get_text_features(tokens["input_ids"], tokens["attention_mask"])
            image, text = (torch.nn.functional.normalize(getattr(part, "pooler_output", part)) for part in (image, text))
            clip = 2.5 * max((image @ text[0]).item(), 0)
            best = max((text[1:] @ text[0]).max().item(), 0)
            scores.append([clip, 2 * clip * best / (clip + best) if clip + best else 0.0])
    return np.array(scores)


def with_torchmetrics(folder: Path, samples: list[Sample], batch: int = 32) -> None:
    import torch
    from torchmetrics.multimodal.clip_score import CLIPScore
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    images = AutoImageProcessor.from_pretrained(folder, backend="pil")

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = CLIPModel.from_pretrained(folder)
            self.config = self.inner.config

        def get_image_features(self, pixels: Any) -> Any:
            return self.inner.get_image_features(pixels).pooler_output

        def get_text_features(self, ids: Any, mask: Any) -> Any:
            return self.inner.get_text_features(ids, mask).pooler_output

    def processor(text: Any = None, **inputs: Any) -> dict[str, Any]:
        tokens = {} if text is None else dict(tokenizer(text, return_tensors="pt", padding=True))
        return tokens | (dict(images(inputs["images"], return_tensors="pt")) if inputs.get("images") is not None else {})

    metric = CLIPScore(model_name_or_path=lambda: (Plain().eval(), processor))
    with torch.inference_mode():
        for start in range(0, len(samples), batch):
            rows = samples[start : start + batch]
            pixels = [torch.from_numpy(np.array(Image.open(sample.image).convert("RGB"))).permute(2, 0, 1) for sample in rows]
            metric.update(pixels, [PROMPT + sample.caption for sample in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of Flickr8k, for real captions; needs --images")
    parser.add_argument("--images", type=Path, help="the folder of Flickr8k's photos")
    parser.add_argument("--peer-rows", type=int, default=96, help="rows that the peers are timed on")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if options.data:
            samples = list(with_images(Flickr8kExpert().load(options.data, "expanded").samples, options.images))
        else:
            samples = synthetic_samples(root / "photos")
        texts = list({text for sample in samples for text in (sample.caption, *sample.references)})
        model = models.vit_b_32(root / "model", texts)
        names = ["clipscore", "refclipscore"]

        def run() -> tuple[Any, dict[str, list[float]]]:
            engine = open_engine(model, store=root / "store", device="cpu")
            spent = measured(engine.backbone)
            return caplens.score(samples, names, model=engine, resamples=0), spent

        # Rows at equal distances, because neighbouring rows have the same photo and caption.
        peer_samples = samples[:: max(1, len(samples) // options.peer_rows)][: options.peer_rows]
        loop, peer = timed(lambda: row_by_row(root / "model", peer_samples))
        first, (results, spent) = timed(run)
        torchmetrics, _ = timed(lambda: with_torchmetrics(root / "model", peer_samples))
        second, (again, _) = timed(run)

    loop, torchmetrics = (seconds * len(samples) / len(peer_samples) for seconds in (loop, torchmetrics))
    rows = [samples.index(sample) for sample in peer_samples]
    worst = max(np.abs(results[name].values[rows] - peer[:, column]).max() for column, name in enumerate(names))
    assert all((again[name].values == results[name].values).all() for name in names)
    (image_seconds, images), (text_seconds, text_count) = spent.values()
    print(f"{len(samples):,} rows, {int(images):,} images and {int(text_count):,} texts, each encoded once: {first:.1f} s")
    print(f"  images {images / image_seconds:.1f}/s, texts {text_count / text_seconds:.0f}/s in the model;", end=" ")
    print(f"share of time in the model {100 * (image_seconds + text_seconds) / first:.0f}%")
    print(f"again, from the store: {second:.2f} s, {first / second:.0f} times as fast")
    print(f"the peers, extrapolated from {len(peer_samples)} rows:")
    print(f"  loop over rows: {loop:.0f} s, {loop / first:.1f} times slower; scores differ by {worst:.1e}")
    print(f"  torchmetrics, CLIPScore only: {torchmetrics:.0f} s, {torchmetrics / first:.1f} times slower")


if __name__ == "__main__":
    main()

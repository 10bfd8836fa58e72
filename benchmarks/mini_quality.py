"""Retrieval with caplens-mini: `python benchmarks/mini_quality.py --data DATA --images PHOTOS`.

Recall of photos by captions in each language, on the test and dev photos; with --run, also how close the shipped model is to the
trained networks. DATA holds flickr8k.
"""

import argparse
from pathlib import Path

import numpy as np
from held_out import Encode, agreement, rate, recalls
from numpy.typing import NDArray

from caplens.backbones import Backbone, load_backbone
from caplens.benchmarks import get_benchmark
from caplens.data import Sample, with_images
from caplens.embed import Engine, Text
from caplens.stats import get_coefficient
from caplens.training.mini.collection import Group, read_groups

Vectors = NDArray[np.float32]


def photo_vectors(engine: Engine, names: list[str], folder: Path) -> Vectors:
    samples = with_images((Sample(name, image=name) for name in names), folder)
    embeddings = engine.images([sample.image for sample in samples if sample.image is not None])
    assert not embeddings.errors, next(iter(embeddings.errors.values()))
    return embeddings.vectors[embeddings.index]


def encoder(engine: Engine) -> Encode:
    def encode(texts: list[str]) -> Vectors:
        embeddings = engine.texts([Text(text) for text in texts])
        return embeddings.vectors[embeddings.index]

    return encode  # type: ignore[return-value]


def retrieval(engine: Engine, data: Path, images: Path) -> None:
    print("| photos | language | captions | R@1 | R@5 | R@10 |\n|---|---|---|---|---|---|")
    for part in ("test", "dev"):
        groups: list[Group] = read_groups(data, part)
        vectors = photo_vectors(engine, [group.photo for group in groups if group.photo], images)
        for lang, recall in recalls(groups, vectors, encoder(engine)).items():
            count = sum(language == lang for group in groups for language, _ in group.captions)
            cells = " | ".join(f"{recall[rank]:.1f}" for rank in (1, 5, 10))
            print(f"| {part} ({len(groups):,}) | {lang} | {count:,} | {cells} |")
    tau = agreement(rate(groups), vectors, encoder(engine))
    print(f"dev photos, tau-b x100 with CIDEr: image {tau['image']:.1f}, best reference {tau['references']:.1f}")


def against_training(backbone: Backbone, run: Path, data: Path, images: Path) -> None:
    """Compare the shipped and the trained model: cosines on the test photos and 1,000 captions, and agreement with experts."""
    import torch
    from PIL import Image
    from safetensors.torch import load_file
    from torch.nn import functional as F

    from caplens.training.mini.captions import encode_rows, padded
    from caplens.training.mini.export import load_model
    from caplens.training.mini.networks import ImageTower

    folder = Path(backbone._folder)  # type: ignore[attr-defined]
    image, text, subwords = load_model(folder)
    network = ImageTower(image.shape)
    network.load_state_dict(load_file(run / "align.safetensors"), strict=False)
    text.load_state_dict(load_file(run / "text.safetensors"))
    groups = read_groups(data, "test")
    engine = Engine(backbone)
    samples = with_images((Sample(group.photo or "", image=group.photo) for group in groups), images)
    shipped = photo_vectors(engine, [group.photo for group in groups if group.photo], images)
    trained = []
    for sample in samples:
        with Image.open(str(sample.image)) as opened, torch.no_grad():
            pixels = torch.from_numpy(np.array(backbone.pixels(opened.convert("RGB")))).permute(2, 0, 1)[None]
            trained.append(F.normalize(network.eval()(pixels.float() / 127.5 - 1), dim=-1).numpy()[0])

    def encode_trained(texts: list[str]) -> Vectors:
        numbers = torch.from_numpy(padded([subwords.encode(caption) for caption in texts], subwords, text.shape.max_tokens))
        return encode_rows(text.eval(), numbers).numpy()

    captions = [caption for group in groups for _, caption in group.captions]
    captions = captions[:: max(1, len(captions) // 1000)][:1000]
    for kind, first, second in (
        ("photos", shipped, np.array(trained)),
        ("captions", encoder(engine)(captions), encode_trained(captions)),
    ):
        cosines = (first * second).sum(1)
        print(f"{len(cosines):,} {kind}: shipped against trained, cosine {cosines.min():.5f} at least, {cosines.mean():.5f} mean")
    row_of = {group.photo: row for row, group in enumerate(groups)}
    rated = get_benchmark("flickr8k-expert").load(data / "flickr8k", "expanded")
    rows = [row_of[str(sample.image)] for sample in rated.samples]
    texts = [str(sample.caption) for sample in rated.samples]
    for name, photos, vectors in (
        ("shipped", shipped, encoder(engine)(texts)),
        ("trained", np.array(trained), encode_trained(texts)),
    ):
        tau = get_coefficient("tau-c")(np.einsum("nd,nd->n", photos[rows], vectors).astype(np.float64), rated.human)
        print(f"Flickr8k-Expert, tau-c x100 of cosines, {name}: {100 * tau:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True, help="the folder of Flickr8k's photos")
    parser.add_argument("--model", default="caplens-mini")
    parser.add_argument("--run", type=Path, help="the folder of the training run that made the model")
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    engine = Engine(backbone)
    retrieval(engine, arguments.data, arguments.images)
    if arguments.run:
        against_training(backbone, arguments.run, arguments.data, arguments.images)


if __name__ == "__main__":
    main()

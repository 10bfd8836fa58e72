"""How good caplens-mini is beyond ratings: `python benchmarks/mini_quality.py --data DATA --images PHOTOS`.

How often a caption finds its photo, in every language (on the test photos where they have captions, else on the dev photos); and,
with --run, how near the shipped file is to the network that was trained. DATA holds flickr8k.
"""

import argparse
from pathlib import Path

import numpy as np
from held_out import Encode, rate, recalls
from numpy.typing import NDArray

from caplens.api.judging import agreement
from caplens.backbones import Backbone, load_backbone
from caplens.benchmarks import get_benchmark
from caplens.data import Sample, with_images
from caplens.embed import Engine, Text
from caplens.stats import get_coefficient
from caplens.training.mini.collection import Group, read_groups

Vectors = NDArray[np.float32]


def photo_vectors(engine: Engine, names: list[str], folder: Path) -> Vectors:
    samples = with_images((Sample(name, image=name) for name in names), folder)
    found = engine.images([sample.image for sample in samples if sample.image is not None])
    assert not found.problems, next(iter(found.problems.values()))
    return found.vectors[found.index]


def encoder(engine: Engine) -> Encode:
    def encode(texts: list[str]) -> Vectors:
        found = engine.texts([Text(text) for text in texts])
        return found.vectors[found.index]

    return encode  # type: ignore[return-value]


def retrieval(engine: Engine, data: Path, images: Path) -> None:
    print("| photos | language | captions | R@1 | R@5 | R@10 |\n|---|---|---|---|---|---|")
    for part in ("test", "dev"):
        groups: list[Group] = read_groups(data, part)
        vectors = photo_vectors(engine, [group.photo for group in groups if group.photo], images)
        for lang, found in recalls(groups, vectors, encoder(engine)).items():
            count = sum(language == lang for group in groups for language, _ in group.captions)
            shares = " | ".join(f"{found[rank]:.1f}" for rank in (1, 5, 10))
            print(f"| {part} ({len(groups):,}) | {lang} | {count:,} | {shares} |")
    agrees = agreement(rate(groups), vectors, encoder(engine))
    print(f"dev photos, tau-b x100 with CIDEr: image {agrees['image']:.1f}, best reference {agrees['references']:.1f}")


def against_training(backbone: Backbone, run: Path, data: Path, images: Path) -> None:
    """Shipped against trained: cosines on the 1,000 test photos and 1,000 of their captions, and agreement with experts."""
    import torch
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
    from PIL import Image

    for sample in samples:
        with Image.open(str(sample.image)) as opened, torch.no_grad():
            pixels = torch.from_numpy(np.array(backbone.pixels(opened.convert("RGB")))).permute(2, 0, 1)[None]
            trained.append(F.normalize(network.eval()(pixels.float() / 127.5 - 1), dim=-1).numpy()[0])

    def encode_trained(texts: list[str]) -> Vectors:
        numbers = torch.from_numpy(padded([subwords.encode(caption) for caption in texts], subwords, text.shape.max_tokens))
        return encode_rows(text.eval(), numbers).numpy()

    captions = [caption for group in groups for _, caption in group.captions]
    captions = captions[:: max(1, len(captions) // 1000)][:1000]
    for what, first, second in (
        ("photos", shipped, np.array(trained)),
        ("captions", encoder(engine)(captions), encode_trained(captions)),
    ):
        cosines = (first * second).sum(1)
        print(f"{len(cosines):,} {what}: shipped against trained, cosine {cosines.min():.5f} at least, {cosines.mean():.5f} mean")
    places = {group.photo: place for place, group in enumerate(groups)}
    judged = get_benchmark("flickr8k-expert").load(data / "flickr8k", "expanded")
    rows = [places[str(sample.image)] for sample in judged.samples]
    texts = [str(sample.caption) for sample in judged.samples]
    for what, photos, vectors in (
        ("shipped", shipped, encoder(engine)(texts)),
        ("trained", np.array(trained), encode_trained(texts)),
    ):
        tau = get_coefficient("tau-c")(np.einsum("nd,nd->n", photos[rows], vectors).astype(np.float64), judged.human)
        print(f"Flickr8k-Expert, tau-c x100 of cosines, {what}: {100 * tau:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True, help="the folder of Flickr8k's photos")
    parser.add_argument("--model", default="caplens-mini")
    parser.add_argument("--run", type=Path, help="the folder of the training run that made the model")
    given = parser.parse_args()
    backbone = load_backbone(given.model)
    engine = Engine(backbone)
    retrieval(engine, given.data, given.images)
    if given.run:
        against_training(backbone, given.run, given.data, given.images)


if __name__ == "__main__":
    main()

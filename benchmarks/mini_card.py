"""What caplens-mini knows: `python benchmarks/mini_card.py --data DATA`, for the model card in docs/mini.md.

By object: how often a caption that names one of COCO's 80 things finds its photo among the first ten of 1,000 held-out photos of
COCO. By fault: how often a caption scores above a perturbed form of itself, on the dev photos of Flickr8k. By kind of image: how
often photos and other images, which are made from photos or drawn here, are out of domain. DATA holds flickr8k and coco.
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from caplens.backbones import Backbone, load_backbone
from caplens.data import Sample
from caplens.embed import Engine, Text
from caplens.perturbation import PERTURBATIONS, perturbed
from caplens.training.mini.collection import Group, read_coco, read_groups, read_photos

Vectors = NDArray[np.float32]
Pixels = NDArray[np.uint8]

THINGS = """
person people man men woman women boy boys girl girls child children kid kids lady guy player players baby |
bicycle bike bicycles bikes | car cars suv taxi | motorcycle motorcycles motorbike |
airplane airplanes plane planes jet airliner | bus buses | train trains | truck trucks | boat boats ship sailboat canoe |
traffic-light stoplight stoplights | fire-hydrant hydrant hydrants | stop-sign | parking-meter | bench benches |
bird birds pigeon seagull duck ducks | cat cats kitten | dog dogs puppy | horse horses | sheep lamb lambs |
cow cows cattle bull | elephant elephants | bear bears | zebra zebras | giraffe giraffes | backpack backpacks |
umbrella umbrellas | handbag purse | tie necktie | suitcase suitcases luggage | frisbee frisbees |
skis skiing skier skiers | snowboard snowboarder snowboarding | sports-ball ball soccer | kite kites | baseball-bat bat |
baseball-glove glove mitt | skateboard skateboards skateboarder skateboarding |
surfboard surfboards surfer surfers surfing | tennis-racket racket racquet | bottle bottles | wine-glass wine-glasses |
cup cups mug | fork forks | knife knives | spoon spoons | bowl bowls | banana bananas | apple apples |
sandwich sandwiches | orange oranges | broccoli | carrot carrots | hot-dog hotdog hotdogs | pizza pizzas |
donut donuts doughnut | cake cakes cupcake | chair chairs | couch sofa | potted-plant plant plants | bed beds |
dining-table table | toilet toilets urinal | tv television | laptop laptops | mouse | remote controller |
keyboard keyboards | cell-phone phone cellphone phones | microwave | oven stove | toaster | sink sinks |
refrigerator fridge | book books | clock clocks | vase vases | scissors | teddy-bear teddy | hair-drier |
toothbrush toothbrushes
"""
"""COCO's things, each with words for it."""
LANGUAGES = ("en", "de", "zh", "ja")
WORDS = "the of and in to is was it with as his on be at by this not are but from or have an they which one".split()


def encode_photos(model: Backbone, pixels: Pixels) -> Vectors:
    return np.concatenate([model.encode_pixels(pixels[start : start + 32]) for start in range(0, len(pixels), 32)])


def encode_texts(model: Backbone, texts: Sequence[str]) -> Vectors:
    embeddings = Engine(model).texts([Text(text) for text in texts])
    return embeddings.vectors[embeddings.index]


def photos_of(data: Path, groups: Sequence[Group], size: int) -> Pixels:
    return np.ascontiguousarray(read_photos(data, [str(group.photo) for group in groups], size).transpose(0, 2, 3, 1))


def by_thing(model: Backbone, data: Path, size: int) -> None:
    groups = [*read_coco(data, "dev"), *read_coco(data, "test")]
    photos = encode_photos(model, photos_of(data, groups, size))
    captions = [(row, caption) for row, group in enumerate(groups) for _, caption in group.captions]
    cosines = encode_texts(model, [caption for _, caption in captions]) @ photos.T
    own = np.array([row for row, _ in captions])
    hits = (cosines > cosines[np.arange(len(own)), own][:, None]).sum(1) < 10
    print(
        f"\nof {len(captions):,} captions of {len(groups):,} photos {100 * hits.mean():.0f}% find their photo among the first ten"
    )
    results = []
    for line in THINGS.split("|"):
        words = [word.replace("-", " ") for word in line.split()]
        pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
        named = np.array([pattern.search(caption) is not None for _, caption in captions])
        if named.any():
            results.append((100 * hits[named].mean(), words[0], int(named.sum())))
    print("; ".join(f"{thing} {share:.0f} ({count})" for share, thing, count in sorted(results, reverse=True)))


def by_fault(model: Backbone, data: Path, size: int) -> None:
    groups = read_groups(data, "dev")
    photos = encode_photos(model, photos_of(data, groups, size))
    print(f"\n| perturbation | {' | '.join(LANGUAGES)} |\n|---|{'---|' * len(LANGUAGES)}")
    for name, perturbation in PERTURBATIONS.items():
        cells = []
        for lang in LANGUAGES:
            pairs = []
            for row, group in enumerate(groups):
                caption = next((text for language, text in group.captions if language == lang), None)
                worse = caption and perturbed(Sample(str(row), caption=caption), perturbation, lang=lang, protocol="gentle")
                if caption and worse and worse.caption != caption:
                    pairs.append((row, caption, worse.caption))
            rows = photos[[row for row, _, _ in pairs]]
            good, bad = (encode_texts(model, [str(pair[place]) for pair in pairs]) for place in (1, 2))
            cells.append(f"{100 * ((rows * good).sum(1) > (rows * bad).sum(1)).mean():.0f}")
        print(f"| {name} | {' | '.join(cells)} |")


def night(image: Image.Image) -> Image.Image:
    dark = np.asarray(image) * 0.12 + np.random.default_rng(0).normal(0, 4, (*image.size[::-1], 3))
    return Image.fromarray(dark.clip(0, 255).astype(np.uint8))


def blur(image: Image.Image) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(min(image.size) * 0.04))


def line_drawing(image: Image.Image) -> Image.Image:
    edges = image.convert("L").filter(ImageFilter.GaussianBlur(1)).filter(ImageFilter.FIND_EDGES)
    return ImageOps.invert(ImageOps.autocontrast(edges)).convert("RGB")


def painting(image: Image.Image) -> Image.Image:
    return ImageOps.posterize(image.filter(ImageFilter.ModeFilter(7)), 4).filter(ImageFilter.SMOOTH)


def negative(image: Image.Image) -> Image.Image:
    grey = ImageOps.invert(image.convert("L").filter(ImageFilter.GaussianBlur(2)))
    return grey.point([int(255 * (value / 255) ** 2.2) for value in range(256)]).convert("RGB")


def grey(image: Image.Image) -> Image.Image:
    return image.convert("L").convert("RGB")


def chart(rng: random.Random) -> Image.Image:
    image = Image.new("RGB", (320, 240), "white")
    pen = ImageDraw.Draw(image)
    pen.line([(30, 10), (30, 210), (310, 210)], fill="black")
    for place in range(8):
        colour = rng.choice(["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728"])
        pen.rectangle([40 + 33 * place, 210 - rng.randint(10, 190), 62 + 33 * place, 210], fill=colour)
        pen.text((42 + 33 * place, 214), str(2010 + place), fill="black")
    return image


def page(rng: random.Random) -> Image.Image:
    image = Image.new("RGB", (300, 400), rng.choice(["white", "#fffdf5"]))
    pen = ImageDraw.Draw(image)
    for top in range(15, 385, 13):
        pen.text((15, top), " ".join(rng.choice(WORDS) for _ in range(9))[:45], fill=rng.choice(["black", "#222222"]))
    return image


def screenshot(rng: random.Random) -> Image.Image:
    image = Image.new("RGB", (400, 260), rng.choice(["#f0f0f0", "#202124", "white"]))
    pen = ImageDraw.Draw(image)
    pen.rectangle([0, 0, 400, 24], fill=rng.choice(["#3367d6", "#444444"]))
    for _ in range(rng.randint(5, 14)):
        left, top = rng.randint(5, 300), rng.randint(30, 230)
        corner = (left + rng.randint(30, 150), top + rng.randint(10, 40))
        pen.rectangle([(left, top), corner], fill=(rng.randint(0, 255), rng.randint(0, 255), rng.randint(0, 255)))
        pen.text((left + 3, top), " ".join(rng.choice(WORDS) for _ in range(4)), fill="black")
    return image


def scan(rng: random.Random) -> Image.Image:
    """Grey ellipses with soft edges and grain, like a medical phantom."""
    image = Image.new("L", (256, 256), 5)
    pen = ImageDraw.Draw(image)
    pen.ellipse([30, 15, 226, 241], fill=190)
    pen.ellipse([40, 25, 216, 231], fill=rng.randint(60, 110))
    for _ in range(rng.randint(5, 12)):
        x, y, width, height = rng.randint(60, 180), rng.randint(60, 180), rng.randint(8, 40), rng.randint(8, 40)
        pen.ellipse([x - width, y - height, x + width, y + height], fill=rng.randint(20, 230))
    grain = np.random.default_rng(rng.randint(0, 2**31)).normal(0, 5, (256, 256))
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(2))) + grain
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert("RGB")


def by_kind(model: Backbone, data: Path, size: int) -> None:
    flickr = [group for group in read_groups(data, "test") if group.photo is not None]
    sets = {"photos of Flickr8k": photos_of(data, flickr, size), "photos of COCO": photos_of(data, read_coco(data, "test"), size)}
    photos = [Image.fromarray(pixels) for pixels in np.concatenate([pixels[:250] for pixels in sets.values()])]
    changes: list[Callable[[Image.Image], Image.Image]] = [grey, night, blur, line_drawing, painting, negative]
    drawings: list[Callable[[random.Random], Image.Image]] = [chart, page, screenshot, scan]
    for change in changes:
        sets[change.__name__] = np.stack([model.pixels(change(photo)) for photo in photos])
    for draw in drawings:
        sets[draw.__name__] = np.stack([model.pixels(draw(random.Random(seed))) for seed in range(200)])
    print("\n| images | number | out of domain |\n|---|---|---|")
    for name, pixels in sets.items():
        outside = np.concatenate([model.out_of_domain(pixels[start : start + 250]) for start in range(0, len(pixels), 250)])
        print(f"| {name.replace('_', ' ')} | {len(pixels):,} | {100 * outside.mean():.1f}% |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="caplens-mini")
    options = parser.parse_args()
    model = load_backbone(options.model)
    size = model.transform.size[0] if model.transform else 224
    for table in (by_thing, by_fault, by_kind):
        table(model, options.data, size)


if __name__ == "__main__":
    main()

"""Training data made on the spot: photos of coloured fields, captions in three languages, a teacher of random weights."""

from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = {
    "red": ((200, 30, 30), "rot", "赤い"),
    "green": ((30, 180, 40), "grün", "緑の"),
    "blue": ((30, 50, 200), "blau", "青い"),
    "white": ((235, 235, 235), "weiß", "白い"),
}
PLACES = {"left": ("links", "左"), "right": ("rechts", "右"), "top": ("oben", "上"), "bottom": ("unten", "下")}
BOXES = {"left": (0, 0, 24, 48), "right": (24, 0, 48, 48), "top": (0, 0, 48, 24), "bottom": (0, 24, 48, 48)}


def _captions(colour: str, place: str) -> dict[str, list[str]]:
    _, german, japanese = COLOURS[colour]
    there, where = PLACES[place]
    return {
        "en": [f"A {colour} field on the {place}.", f"The {place} is {colour}."],
        "de": [f"Ein Feld {there}, {german}.", f"Es ist {german}, {there}."],
        "ja": [f"{where}に{japanese}四角がある。"],
    }


def make(root: Path) -> Path:
    """Laid out as docs/mini.md describes it. Photos 0 to 63 are for training, 64 to 79 dev, 80 to 95 test."""
    flickr = root / "flickr8k"
    (flickr / "images").mkdir(parents=True)
    (flickr / "captions").mkdir()
    (root / "multi30k").mkdir()
    (root / "teacher").mkdir()
    chance = np.random.default_rng(0)
    kinds = [(colour, place) for colour in COLOURS for place in PLACES]
    lines = {"en": [], "de": [], "ja": []}
    names = [f"{1000 + number}_x.jpg" for number in range(96)]
    for number, name in enumerate(names):
        colour, place = kinds[number % len(kinds)]
        canvas = Image.new("RGB", (48, 48), (90, 90, 90))
        canvas.paste(COLOURS[colour][0], BOXES[place])
        noisy = np.asarray(canvas, dtype=np.int16) + chance.integers(-15, 16, (48, 48, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(flickr / "images" / name)
        for lang, captions in _captions(colour, place).items():
            lines[lang] += [f"{name}\t{place_}\t{caption}\n" for place_, caption in enumerate(captions)]
    for lang, some in lines.items():
        (flickr / "captions" / f"{lang}.made.tsv").write_text("".join(some), encoding="utf-8")
    for part, (first, last) in {"train": (0, 64), "dev": (64, 80), "test": (80, 96)}.items():
        (flickr / f"{part}.txt").write_text("\n".join(names[first:last]) + "\n", encoding="utf-8")
    numbers = [1003, *range(2000, 2040)]
    for lang in ("en", "de", "fr", "cs"):
        text = "".join(f"{number}\t0\t{lang} caption of scene {number % 7}\n" for number in [*numbers, 1070])
        (root / "multi30k" / f"{lang}.tsv").write_text(text, encoding="utf-8")
    np.savez(root / "teacher" / "efficientnet_lite4_fp16.npz", **_teacher(chance))
    return root


def _teacher(chance) -> dict[str, np.ndarray]:
    """The layout and the widths of the real one's maps; all blocks are narrow inside."""
    made = {}

    def add(name, outside, inside, kernel=1):
        spread = 1.5 / (inside * kernel**2) ** 0.5
        made[f"{name}.weight"] = chance.normal(0, spread, (outside, inside, kernel, kernel)).astype(np.float16)
        made[f"{name}.bias"] = np.full(outside, 0.05, dtype=np.float16)

    add("stem", 8, 3, 3)
    channels, number = 8, 0
    for width, kernel, repeats in ((8, 3, 1), (32, 3, 4), (56, 5, 4), (16, 3, 6), (160, 5, 6), (16, 5, 8), (160, 3, 1)):
        for _ in range(repeats):
            hidden = channels if number == 0 else 16
            if number:
                add(f"b{number:02}.expand", hidden, channels)
            add(f"b{number:02}.depthwise", hidden, 1, kernel)
            add(f"b{number:02}.project", width, hidden)
            channels, number = width, number + 1
    add("head", 1280, channels)
    return made

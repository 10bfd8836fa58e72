"""Further positives for `train pacs`: an image generated from each caption, and a caption of each photo (PAC-S, section 3).

Any text-to-image model of diffusers and any captioner will do. What is generated is kept at once, so that a run that was stopped goes
on; the file that training reads is written at the end.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image

from caplens.backbones.torch_backbone import choose_device
from caplens.captioners import Captioner
from caplens.data import Sample, with_images, write_samples
from caplens.data.files import replacing
from caplens.data.media import ImageSource, media_name
from caplens.embed.images import UnreadableError, decode, read
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.progress import track
from caplens.training.recipes.pacs import MADE_CAPTION, MADE_IMAGE

Paint = Callable[[Sequence[str], Sequence[int]], list[Image.Image]]
"""Captions and a seed for each, to images."""
_DESCRIBED = "described.jsonl"


def augment_captions(
    samples: Sequence[Sample],
    images: Path,
    folder: Path,
    paint: Paint,
    captioner: Captioner,
    *,
    seed: int = 0,
    batch: int = 8,
) -> Path:
    """Make what is missing; gives back the file of the samples with `made_image` and `made_caption`.

    The names of photos are relative to `images`, and stay so in the file.
    """
    usable = [
        (sample, opened) for sample, opened in zip(samples, with_images(samples, images), strict=True) if _is_usable(opened)
    ]
    if not usable:
        raise InputError(f"no caption has an image; pass the folder of the images with {option('images')}.")
    try:
        (folder / "images").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: this folder cannot be made ({error.strerror}). Choose another with {option('out')}."
        ) from None
    photos = {opened.group: opened.image for _, opened in usable if opened.image is not None}
    # First, because it is quick: a photo that cannot be opened is told before hours of painting.
    described = _describe(photos, folder, captioner, batch)
    _paint([opened.caption for _, opened in usable if opened.caption], folder, paint, seed, batch)
    made = (
        replace(
            sample,
            meta={**sample.meta, MADE_IMAGE: _image_name(sample.caption or "", seed), MADE_CAPTION: described[opened.group]},
        )
        for sample, opened in usable
    )
    write_samples(made, folder / "captions.jsonl")
    return folder / "captions.jsonl"


def _is_usable(sample: Sample) -> bool:
    return sample.image is not None and bool(sample.caption and sample.caption.strip())


def _image_name(caption: str, seed: int) -> str:
    return f"images/{hashlib.sha256(f'{seed} {caption}'.encode()).hexdigest()[:24]}.png"


def _paint(captions: Sequence[str], folder: Path, paint: Paint, seed: int, batch: int) -> None:
    missing = [caption for caption in dict.fromkeys(captions) if not (folder / _image_name(caption, seed)).is_file()]
    parts = [missing[start : start + batch] for start in range(0, len(missing), batch)]
    for part in track(parts, "painting captions", len(missing), size=len):
        # A caption's image does not depend on which others are painted with it.
        seeds = [int.from_bytes(hashlib.sha256(f"{seed} {caption}".encode()).digest()[:4]) for caption in part]
        for caption, image in zip(part, paint(part, seeds), strict=True):
            with replacing(folder / _image_name(caption, seed)) as temporary:
                image.convert("RGB").save(temporary, format="PNG")


def _describe(photos: dict[str, ImageSource], folder: Path, captioner: Captioner, batch: int) -> dict[str, str]:
    """Photo -> what is said of it."""
    place = folder / _DESCRIBED
    found = _read_described(place)
    missing = [name for name in photos if name not in found]
    parts = [missing[start : start + batch] for start in range(0, len(missing), batch)]
    for part in track(parts, "describing photos", len(missing), size=len):
        try:
            images = [decode(read(photos[name]), media_name(photos[name])) for name in part]
        except UnreadableError as error:
            raise InputError(f"{error}.") from None
        said = {name: text.strip() for name, text in zip(part, captioner(images), strict=True)}
        empty = next((name for name, text in said.items() if not text), None)
        if empty is not None:
            raise InputError(f"{empty}: the captioner returns no text for it. Choose another captioner, or leave the photo out.")
        try:
            with place.open("a", encoding="utf-8") as out:
                out.writelines(json.dumps([name, text], ensure_ascii=False) + "\n" for name, text in said.items())
        except OSError as error:
            raise InputError(f"{place}: cannot be written ({error.strerror}). Make room and run the command again.") from None
        found |= said
    return {name: found[name] for name in photos}


def _read_described(place: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    if place.is_file():
        for line in place.read_text(encoding="utf-8").splitlines():
            try:
                name, text = json.loads(line)
            except ValueError:
                # The end of a line that was being written when the run was killed.
                continue
            found[str(name)] = str(text)
    return found


def load_painter(name: str, *, steps: int, size: int, device: str = "auto") -> Paint:
    """A text-to-image model of diffusers: a name on the hub, or a folder."""
    diffusers = require("diffusers", "Painting captions", "augment")
    where = choose_device(device, torch)
    kind = torch.float16 if where.startswith("cuda") else torch.float32
    try:
        pipe = diffusers.AutoPipelineForText2Image.from_pretrained(name, use_safetensors=True).to(where, kind)
    except Exception as error:
        # A missing network, damaged files and unsafe pickles all raise something else.
        raise InputError(f"{name}: diffusers cannot load this model ({reason(error)}).") from None
    pipe.set_progress_bar_config(disable=True)

    def paint(captions: Sequence[str], seeds: Sequence[int]) -> list[Image.Image]:
        rng = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        made: list[Image.Image] = pipe(list(captions), generator=rng, num_inference_steps=steps, height=size, width=size).images
        return made

    return paint

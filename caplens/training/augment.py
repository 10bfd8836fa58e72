"""Further positives for `train pacs`: an image generated from each caption, and a caption of each photo (PAC-S, section 3).

Any text-to-image model of diffusers and any captioner can be used. Each result is written as soon as it is generated, so that a
stopped run can be resumed. The file that training reads is written at the end.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image

from caplens.backbones.pretrained import open_pretrained
from caplens.backbones.torch_backbone import choose_device
from caplens.data import Sample, SampleFile, with_images, write_samples
from caplens.data.media import ImageSource, MissingImage
from caplens.data.replacing import ensure_apart, replacing
from caplens.embed.images import UnreadableError, decode
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.progress import logger, note_kept, track
from caplens.training.recipes.pacs import MADE_CAPTION, MADE_IMAGE

Paint = Callable[[Sequence[str], Sequence[int]], list[Image.Image]]
"""(captions, seeds) -> images"""
Describe = Callable[[Sequence[Image.Image]], list[str]]
"""images -> captions"""
_WITHHELD = ".withheld"
"""What the name of a mark ends with that an image was blacked out."""
_DESCRIPTIONS_FILE, _CAPTIONS_FILE = AUGMENTED = "described.jsonl", "captions.jsonl"


def augment_captions(
    samples: Sequence[Sample],
    images: Path,
    folder: Path,
    paint: Paint,
    captioner: Describe,
    *,
    seed: int = 0,
    batch: int = 8,
) -> Path:
    """Generate an image of each caption and a caption of each photo.

    Results of an earlier run in the same folder are used again.

    Parameters
    ----------
    samples
        Good captions. Those without an image are left out.
    images
        The folder that the names of photos are relative to; they stay so in the file.
    folder
        Where to write the results.
    paint
        The text-to-image model, such as `load_painter` returns.
    captioner
        The captioner, such as `load_captioner` returns.
    seed
        An image depends on its caption and this seed only.
    batch
        Captions or photos that are processed together.

    Returns
    -------
    Path
        The file of the samples with `made_image` and `made_caption`.
    """
    if isinstance(samples, SampleFile):
        ensure_apart(folder / _CAPTIONS_FILE, samples.path)
    usable = [
        (sample, resolved) for sample, resolved in zip(samples, with_images(samples, images), strict=True) if _is_usable(resolved)
    ]
    if not usable:
        raise InputError(f"no caption has an image; give the folder of the images with {option('images', 'FOLDER')}.")
    try:
        (folder / "images").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: this folder cannot be created ({error.strerror}). Choose another with {option('out', 'FOLDER')}."
        ) from None
    note_kept(f"What was generated is in {folder}, and the same command goes on.")
    photos = {resolved.group: resolved.image for _, resolved in usable if resolved.image is not None}
    # Captioning comes first because it is quick: a photo that cannot be opened is reported before hours of painting.
    descriptions = _describe(photos, folder, captioner, batch)
    _paint([resolved.caption for _, resolved in usable if resolved.caption], folder, paint, seed, batch)
    painted = _with_images_left(usable, folder, seed)
    augmented = (
        replace(
            sample,
            meta={
                **sample.meta,
                MADE_IMAGE: _image_name(sample.caption or "", seed),
                MADE_CAPTION: descriptions[resolved.group],
            },
        )
        for sample, resolved in painted
    )
    write_samples(augmented, folder / _CAPTIONS_FILE)
    return folder / _CAPTIONS_FILE


def _with_images_left(usable: Sequence[tuple[Sample, Sample]], folder: Path, seed: int) -> list[tuple[Sample, Sample]]:
    """The captions whose images were not blacked out."""
    painted = [pair for pair in usable if (folder / _image_name(pair[0].caption or "", seed)).is_file()]
    if not painted:
        raise InputError("the painter blacked out every image. Choose another painter, or other captions.")
    if len(painted) < len(usable):
        logger.warning(
            f"{len(usable) - len(painted):,} of {len(usable):,} captions were left out: the painter's safety checker blacked out"
            " their images."
        )
    return painted


def _is_usable(sample: Sample) -> bool:
    """Whether the sample has an image and a caption."""
    return not isinstance(sample.image, MissingImage | None) and bool(sample.caption and sample.caption.strip())


def _image_name(caption: str, seed: int) -> str:
    return f"images/{hashlib.sha256(f'{seed} {caption}'.encode()).hexdigest()[:24]}.png"


def _paint(captions: Sequence[str], folder: Path, paint: Paint, seed: int, batch: int) -> None:
    """Write the missing images of captions; of one that was blacked out, a mark in its place."""
    missing = [
        caption
        for caption in dict.fromkeys(captions)
        if not any((folder / f"{_image_name(caption, seed)}{end}").is_file() for end in ("", _WITHHELD))
    ]
    batches = [missing[start : start + batch] for start in range(0, len(missing), batch)]
    for texts in track(batches, "painting captions", len(missing), size=len):
        # Each caption has its own seed, so that its image does not depend on the rest of the batch.
        seeds = [int.from_bytes(hashlib.sha256(f"{seed} {caption}".encode()).digest()[:4]) for caption in texts]
        for caption, image in zip(texts, paint(texts, seeds), strict=True):
            picture = image.convert("RGB")
            if picture.getbbox() is None:
                # All black: this is what safety checkers leave of an image.
                (folder / f"{_image_name(caption, seed)}{_WITHHELD}").touch()
                continue
            with replacing(folder / _image_name(caption, seed)) as temporary:
                picture.save(temporary, format="PNG")


def _describe(photos: dict[str, ImageSource], folder: Path, captioner: Describe, batch: int) -> dict[str, str]:
    """Photo -> generated caption. New captions are appended to a file in `folder`."""
    path = folder / _DESCRIPTIONS_FILE
    descriptions = _read_descriptions(path)
    missing = [name for name in photos if name not in descriptions]
    batches = [missing[start : start + batch] for start in range(0, len(missing), batch)]
    for names in track(batches, "describing photos", len(missing), size=len):
        new = _caption_photos({name: photos[name] for name in names}, captioner)
        try:
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps([name, text], ensure_ascii=False) + "\n" for name, text in new.items())
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}). Free some disk space, then run the command again."
            ) from None
        descriptions |= new
    return {name: descriptions[name] for name in photos}


def _caption_photos(photos: dict[str, ImageSource], captioner: Describe) -> dict[str, str]:
    try:
        images = [decode(photo) for photo in photos.values()]
    except UnreadableError as error:
        raise InputError(f"{error}.") from None
    captions = {name: text.strip() for name, text in zip(photos, captioner(images), strict=True)}
    empty = next((name for name, text in captions.items() if not text), None)
    if empty is not None:
        raise InputError(f"{empty}: the captioner returns no text for it. Choose another captioner, or leave the photo out.")
    return captions


def _read_descriptions(path: Path) -> dict[str, str]:
    descriptions: dict[str, str] = {}
    if path.is_file():
        for line in path.read_bytes().split(b"\n"):
            try:
                name, text = json.loads(line)
            except (ValueError, TypeError):
                # A line that was only partly written when the run was killed.
                continue
            descriptions[str(name)] = str(text)
    return descriptions


def load_painter(name: str, *, steps: int, size: int, device: str = "auto", watermark: bool = False) -> Paint:
    """Load a text-to-image model of diffusers.

    Parameters
    ----------
    name
        Its name on the hub, or its folder.
    steps
        Denoising steps per image.
    size
        Height and width of images in pixels.
    device
        As for models: `auto`, `cpu`, `cuda`, ….
    watermark
        Whether images carry the invisible watermark of the model, where it has one. PAC-S leaves it off, so that a model cannot
        learn to tell generated images by it.

    Returns
    -------
    Paint
        A function from captions and seeds to images.
    """
    diffusers = require("diffusers", "Painting captions", "augment")
    device = choose_device(device, torch)
    dtype = torch.float16 if device.startswith("cuda") else torch.float32
    try:
        pipe = open_pretrained(diffusers.AutoPipelineForText2Image, name, use_safetensors=True).to(device, dtype)
    except Exception as error:
        # A missing network, damaged files and unsafe pickles raise errors of many types.
        raise InputError(f"{name}: diffusers cannot load this model ({reason(error)}).") from None
    pipe.set_progress_bar_config(disable=True)
    if not watermark and getattr(pipe, "watermark", None) is not None:
        pipe.watermark = None

    def paint(captions: Sequence[str], seeds: Sequence[int]) -> list[Image.Image]:
        generators = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        output = pipe(list(captions), generator=generators, num_inference_steps=steps, height=size, width=size)
        images: list[Image.Image] = output.images
        return images

    return paint

"""`caplens augment`: images of captions and captions of photos, for `caplens train pacs`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.captioners import load_captioner
from caplens.cli.command import command
from caplens.cli.options import Device, Seed
from caplens.cli.output import info
from caplens.data import SampleFile
from caplens.libraries import require

EXAMPLES = """
caplens augment captions.jsonl --images photos --out augmented --painter ORG/NAME --captioner ORG/NAME
caplens train pacs augmented/captions.jsonl --images photos --out runs/pacs
"""


def augment(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")],
    images: Annotated[Path, typer.Option(help="The folder that the images' names are relative to.")],
    out: Annotated[Path, typer.Option(help="The folder for what is generated; a run that finds its own files there goes on.")],
    painter: Annotated[str, typer.Option(help="A text-to-image model of diffusers: a name on the hub, or a folder.")],
    captioner: Annotated[
        str, typer.Option(help="A captioner of transformers (a name on the hub, or a folder), or one of another package.")
    ],
    steps: Annotated[int, typer.Option(min=1, help="Steps of the painter.")] = 30,
    size: Annotated[int, typer.Option(min=8, help="Pixels of generated images, in height and width.")] = 512,
    batch: Annotated[int, typer.Option(min=1, help="Captions or photos at a time.")] = 8,
    watermark: Annotated[
        bool,
        typer.Option("--watermark", help="Keep the painter's invisible watermark, which the paper leaves off."),
    ] = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> dict[str, Any]:
    """Generate an image of each caption and a caption of each photo, as further positives for 'caplens train pacs'."""
    require("torch", "Generating images and captions", "augment")
    from caplens.training.augment import AUGMENTED, augment_captions, load_painter
    from caplens.training.loop.run import claim_folder

    settings = {"painter": painter, "captioner": captioner, "steps": steps, "size": size, "seed": seed, "watermark": watermark}
    claim_folder(out, settings, written=AUGMENTED, writes=False)
    paint = load_painter(painter, steps=steps, size=size, device=device, watermark=watermark)
    describe = load_captioner(captioner, device=device)
    # Only now, so that a misspelled model can be corrected.
    claim_folder(out, settings, written=AUGMENTED)
    written = augment_captions(list(SampleFile(captions)), images, out, paint, describe, seed=seed, batch=batch)
    info(f"train with: caplens train pacs {written} --images {images} --out OUT")
    return {"written": str(written)}


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(augment)

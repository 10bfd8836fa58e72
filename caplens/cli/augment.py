"""`caplens augment`: images of captions and captions of photos, for `caplens train pacs`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import say
from caplens.data import SampleFile
from caplens.libraries import require

EXAMPLES = """
[bold]Examples[/bold]

caplens augment captions.jsonl --images photos --out augmented --painter ORG/NAME --captioner ORG/NAME

caplens train pacs augmented/captions.jsonl --images photos --out runs/pacs
"""


def augment(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")],
    images: Annotated[Path, typer.Option(help="The folder that the images' names are relative to.")],
    out: Annotated[Path, typer.Option(help="Where what is made goes; a run that finds its own files there goes on.")],
    painter: Annotated[str, typer.Option(help="A text-to-image model of diffusers: a name on the hub, or a folder.")],
    captioner: Annotated[str, typer.Option(help="A captioner of transformers: a name on the hub, or a folder.")],
    steps: Annotated[int, typer.Option(min=1, help="Steps of the painter.")] = 30,
    size: Annotated[int, typer.Option(min=8, help="Pixels of made images, in height and width.")] = 512,
    batch: Annotated[int, typer.Option(min=1, help="Captions or photos at once.")] = 8,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> dict[str, Any]:
    """Make an image of each caption and a caption of each photo, as further positives for 'caplens train pacs'."""
    require("torch", "Making images and captions", "augment")
    from caplens.train.augment import augment as make
    from caplens.train.augment import load_captioner, load_painter

    with progress_bar(quiet):
        paint = load_painter(painter, steps=steps, size=size, device=device)
        describe = load_captioner(captioner, device=device)
        made = make(list(SampleFile(captions)), images, out, paint, describe, seed=seed, batch=batch)
    say(f"train with: caplens train pacs {made} --images {images} --out OUT")
    return {"written": str(made)}

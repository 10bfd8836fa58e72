"""`caplens train`: making models."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caplens.backbones.mini import DEFAULT
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.everywhere import everywhere
from caplens.cli.output import say
from caplens.data import Sample, SampleFile, with_images
from caplens.errors import InputError
from caplens.libraries import require

if TYPE_CHECKING:
    from caplens.train.tuning import Job

app = typer.Typer(no_args_is_help=True, help="Train models.", rich_markup_mode="rich")

_NEEDED = ("torch", "safetensors", "sentencepiece", "onnx")
MINI_EXAMPLES = """
[bold]Examples[/bold]

caplens train mini --data data --out runs/mini

caplens train mini --data data --out runs/try --small

caplens train mini --data data --out runs/short --set distil.steps=500 --set align.epochs=10

caplens score captions.jsonl --images photos --model runs/mini/model
"""


Out = Annotated[Path, typer.Option(help="Where its files go; a run that finds its own files there goes on.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="Change a value of the recipe: SECTION.KEY=VALUE.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Model = Annotated[
    str,
    typer.Option(
        help="What is tuned: caplens-mini, the folder of a model that caplens trained, or an hf:, openclip:, mclip: model."
    ),
]
Recipe = Annotated[Path | None, typer.Option("--config", help="Another recipe. \\[default: that of the package]")]
Images = Annotated[Path, typer.Option(help="The folder that the images' names are relative to.")]
Validate = Annotated[Path | None, typer.Option(help="Captions with 'ratings'; the weights that agree best with these are kept.")]
Tensorboard = Annotated[bool, typer.Option("--tensorboard", help="Write what TensorBoard reads, into OUT/tensorboard.")]


@app.command(epilog=MINI_EXAMPLES)
@everywhere
def mini(
    data: Annotated[Path, typer.Option(help="The folder with flickr8k, multi30k and teacher; docs/mini.md describes it.")],
    out: Out,
    config: Annotated[Path | None, typer.Option(help="Another recipe. \\[default: the one that made caplens-mini]")] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A recipe of three minutes on two cores, to see whether all is well.")
    ] = False,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> dict[str, Any] | None:
    """Train a model like caplens-mini from photos and captions in several languages: minutes on a GPU, days without.

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    _need()
    from caplens.train.mini import train_mini
    from caplens.train.recipe import read_config

    if small and config is not None:
        raise InputError("--small is a recipe of its own; leave --config off.")
    if not data.is_dir():
        raise InputError(f"{data}: there is no such folder of training data.")
    recipe = read_config(config, change or (), small=small)
    with progress_bar(quiet):
        made = train_mini(data, out, recipe, seed, device)
    return _made(made)


def _need() -> None:
    for module in _NEEDED:
        require(module, "Training", "train")


def _job(
    recipe: str,
    model: str,
    out: Path,
    config: Path | None,
    change: list[str] | None,
    seed: int,
    device: str,
    tensorboard: bool,
) -> "Job":
    _need()
    from caplens.train.recipe import read_config
    from caplens.train.tuning import Job

    return Job(model, out, read_config(config, change or (), recipe=recipe), seed, device, tensorboard)


def _read(path: Path | None, images: Path) -> list[Sample]:
    return [] if path is None else list(with_images(SampleFile(path), images))


def _leads() -> bool:
    """Of several processes that train together, one speaks."""
    return os.environ.get("RANK", "0") == "0"


def _made(folder: Path) -> dict[str, Any] | None:
    if not _leads():
        return None
    say(f"the model is in {folder}; use it with --model {folder}")
    return {"model": str(folder)}


MCLIPSCORE_EXAMPLES = """
[bold]Examples[/bold]

caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/tuned

caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/pearson --set 'losses.choice="pearson"'

caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/clip --model hf:ORG/NAME

caplens score captions.jsonl --images photos --model runs/tuned/model
"""


@app.command(epilog=MCLIPSCORE_EXAMPLES)
@everywhere
def mclipscore(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")],
    ratings: Annotated[Path, typer.Option(help="Captions with 'image', 'lang' and 'ratings'.")],
    images: Images,
    out: Out,
    model: Model = DEFAULT,
    config: Recipe = None,
    validate: Validate = None,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    tensorboard: Tensorboard = False,
    quiet: options.Quiet = False,
) -> dict[str, Any] | None:
    """Tune a model on human ratings, with contrastive and Pearson losses (multilingual CLIPScore).

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    job = _job("mclipscore", model, out, config, change, seed, device, tensorboard)
    from caplens.train.mclipscore import train_mclipscore

    with progress_bar(quiet or not _leads()):
        made = train_mclipscore(_read(captions, images), _read(ratings, images), job, _read(validate, images))
    return _made(made)


PACS_EXAMPLES = """
[bold]Examples[/bold]

caplens augment captions.jsonl --images photos --out augmented --painter ORG/NAME --captioner ORG/NAME

caplens train pacs augmented/captions.jsonl --images photos --out runs/pacs --model hf:openai/clip-vit-base-patch32

caplens train pacs augmented/captions.jsonl --images photos --out runs/lora --set 'train.parts="lora"'

caplens score captions.jsonl --images photos --metric pacs --model runs/pacs/model
"""


@app.command(epilog=PACS_EXAMPLES)
@everywhere
def pacs(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image', 'made_image' and 'made_caption'.")],
    images: Images,
    out: Out,
    made_images: Annotated[
        Path | None, typer.Option(help="The folder that made images' names are relative to. \\[default: that of CAPTIONS]")
    ] = None,
    model: Model = DEFAULT,
    config: Recipe = None,
    validate: Validate = None,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    tensorboard: Tensorboard = False,
    quiet: options.Quiet = False,
) -> dict[str, Any] | None:
    """Tune a model with generated images and captions as further positives (PAC-S).

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    job = _job("pacs", model, out, config, change, seed, device, tensorboard)
    from caplens.train.pacs import train_pacs

    folder = captions.parent if made_images is None else made_images
    with progress_bar(quiet or not _leads()):
        made = train_pacs(_read(captions, images), folder, job, _read(validate, images))
    return _made(made)


TEACHER_EXAMPLES = """
[bold]Examples[/bold]

caplens train teacher translations.jsonl --out runs/czech

caplens train teacher translations.jsonl --student ORG/ENCODER --model hf:ORG/NAME --out runs/student

A line of translations.jsonl: {"id": "1", "caption": "Pes běží.", "lang": "cs", "source": "A dog runs."}
"""


@app.command(epilog=TEACHER_EXAMPLES)
@everywhere
def teacher(
    captions: Annotated[Path, typer.Argument(help="Translations, with 'lang' and the English sentence as 'source'.")],
    out: Out,
    model: Annotated[str, typer.Option(help="The teacher: a model whose text tower knows English.")] = DEFAULT,
    student: Annotated[
        str,
        typer.Option(
            help="'same' for a copy of the teacher's text tower, or a transformers encoder: a name on the hub or a folder."
        ),
    ] = "same",
    config: Recipe = None,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    tensorboard: Tensorboard = False,
    quiet: options.Quiet = False,
) -> dict[str, Any] | None:
    """Teach a text tower new languages from translations, without images (PR-MCS, M-CLIP).

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    job = _job("teacher", model, out, config, change, seed, device, tensorboard)
    from caplens.train.teacher import train_teacher

    with progress_bar(quiet or not _leads()):
        made = train_teacher(list(SampleFile(captions)), student, job)
    return _made(made)


PRMCS_EXAMPLES = """
[bold]Examples[/bold]

caplens train prmcs captions.jsonl --images photos --out runs/prmcs

caplens train prmcs captions.jsonl --images photos --sentences more.jsonl --out runs/prmcs

caplens robustness held_out.jsonl --images photos --model runs/prmcs/model
"""


@app.command(epilog=PRMCS_EXAMPLES)
@everywhere
def prmcs(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")],
    images: Images,
    out: Out,
    model: Model = DEFAULT,
    config: Recipe = None,
    sentences: Annotated[
        Path | None, typer.Option(help="More good captions, whose photos are not at hand; a caption and its 'lang' each.")
    ] = None,
    validate: Validate = None,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    tensorboard: Tensorboard = False,
    quiet: options.Quiet = False,
) -> dict[str, Any] | None:
    """Teach a model's text tower to notice perturbed captions (PR-MCS).

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    job = _job("prmcs", model, out, config, change, seed, device, tensorboard)
    from caplens.train.prmcs import train_prmcs

    with progress_bar(quiet or not _leads()):
        made = train_prmcs(
            _read(captions, images), job, _read(validate, images), None if sentences is None else SampleFile(sentences)
        )
    return _made(made)

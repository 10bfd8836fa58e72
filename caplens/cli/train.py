"""`caplens train`: making models."""

from pathlib import Path
from typing import Annotated

import typer

from caplens.backbones.mini import DEFAULT, mini_folder
from caplens.backbones.registry import is_mini
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import say
from caplens.data import SampleFile, with_images
from caplens.embed import open_engine
from caplens.errors import InputError
from caplens.libraries import require

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


@app.command(epilog=MINI_EXAMPLES)
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
) -> None:
    """Train a model like caplens-mini from photos and captions in several languages: minutes on a GPU, days without.

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    for module in _NEEDED:
        require(module, "Training", "train")
    from caplens.train.mini import train_mini
    from caplens.train.recipe import read_config

    if small and config is not None:
        raise InputError("--small is a recipe of its own; leave --config off.")
    if not data.is_dir():
        raise InputError(f"{data}: there is no such folder of training data.")
    recipe = read_config(config, change or (), small=small)
    with progress_bar(quiet):
        made = train_mini(data, out, recipe, seed, device)
    say(f"the model is in {made}; use it with --model {made}")


PRMCS_EXAMPLES = """
[bold]Examples[/bold]

caplens train prmcs captions.jsonl --images photos --out runs/prmcs

caplens robustness held_out.jsonl --images photos --model runs/prmcs/model
"""


@app.command(epilog=PRMCS_EXAMPLES)
def prmcs(
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")],
    images: Annotated[Path, typer.Option(help="The folder that the images' names are relative to.")],
    out: Out,
    model: Annotated[str, typer.Option(help="caplens-mini, or the folder of a model that caplens trained.")] = DEFAULT,
    config: Annotated[Path | None, typer.Option(help="Another recipe. \\[default: prmcs.toml of the package]")] = None,
    change: Changes = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Teach a model's text tower to notice perturbed captions (PR-MCS): minutes on two cores.

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    for module in _NEEDED:
        require(module, "Training", "train")
    from caplens.train.prmcs import train_prmcs
    from caplens.train.recipe import read_config

    recipe = read_config(config, change or (), recipe="prmcs")
    if not is_mini(model):
        raise InputError(f"{model}: so far only caplens-mini and models trained by caplens can be tuned so.")
    with progress_bar(quiet):
        engine = open_engine(model)
        samples = list(with_images(SampleFile(captions), images))
        made = train_prmcs(samples, engine, mini_folder(model), out, recipe, seed, device)
    say(f"the model is in {made}; use it with --model {made}")

"""`caplens train`: one command per recipe, generated from the table of recipes."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from caplens.backbones.mini import DEFAULT
from caplens.cli.command import CommandFunction, command, option_group
from caplens.cli.options import Device, Seed
from caplens.cli.output import info
from caplens.data import Sample, SampleFile, with_images
from caplens.errors import InputError
from caplens.libraries import require
from caplens.progress import logger

if TYPE_CHECKING:
    from caplens.training.recipes.tuning import Job

_WITH_PAPER = ("mclipscore", "pacs", "prmcs")
_LIBRARIES = ("torch", "safetensors", "sentencepiece", "onnx")
_WHERE = "The model is the folder OUT/model, to be used with --model OUT/model."


class RecipePreset(StrEnum):
    caplens = "caplens"
    paper = "paper"


Out = Annotated[Path, typer.Option(help="The folder of the run; a run that finds its own files there goes on.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="Change a value of the recipe: SECTION.KEY=VALUE.")]
Config = Annotated[Path | None, typer.Option("--config", help="Another recipe, in TOML. \\[default: that of the package]")]
Tensorboard = Annotated[bool, typer.Option("--tensorboard", help="Write what TensorBoard reads, into OUT/tensorboard.")]
Images = Annotated[Path, typer.Option(help="The folder that the images' names are relative to.")]
GoodCaptions = Annotated[Path, typer.Argument(help="Good captions, with 'image' and 'lang'.")]
Model = Annotated[
    str,
    typer.Option(
        help="The model to tune: caplens-mini, the folder of a model that caplens trained, or an hf:, openclip: or mclip: model."
    ),
]
Validate = Annotated[Path | None, typer.Option(help="Captions with 'ratings'; the weights that agree best with these are kept.")]


@option_group
@dataclass(frozen=True)
class RunOptions:
    """How every recipe is run."""

    out: Out
    config: Config = None
    preset: Annotated[
        RecipePreset | None,
        typer.Option(help="The recipe of caplens, or that of the paper (not for distill). \\[default: caplens]"),
    ] = None
    change: Changes = None
    device: Device = "auto"
    seed: Seed = 0
    tensorboard: Tensorboard = False


@option_group
@dataclass(frozen=True)
class MclipscoreInputs:
    captions: GoodCaptions
    ratings: Annotated[Path, typer.Option(help="Captions with 'image', 'lang' and 'ratings'.")]
    images: Images
    model: Model = DEFAULT
    validate: Validate = None

    def arguments(self, job: "Job") -> tuple[Any, ...]:
        samples, rated = _read(self.captions, self.images), _read(self.ratings, self.images)
        return samples, rated, job, _read(self.validate, self.images)


@option_group
@dataclass(frozen=True)
class PacsInputs:
    captions: Annotated[Path, typer.Argument(help="Good captions, with 'image', 'made_image' and 'made_caption'.")]
    images: Images
    made_images: Annotated[
        Path | None, typer.Option(help="The folder that generated images' names are relative to. \\[default: that of CAPTIONS]")
    ] = None
    model: Model = DEFAULT
    validate: Annotated[
        Path | None,
        typer.Option(
            help="Captions with 'ratings', or with images alone; those weights are kept that agree best, or lose least."
        ),
    ] = None

    def arguments(self, job: "Job") -> tuple[Any, ...]:
        folder = self.captions.parent if self.made_images is None else self.made_images
        return _read(self.captions, self.images), folder, job, _read(self.validate, self.images)


@option_group
@dataclass(frozen=True)
class DistillInputs:
    captions: Annotated[Path, typer.Argument(help="Translations, with 'lang' and the English sentence as 'source'.")]
    model: Annotated[str, typer.Option(help="The teacher: a model whose text tower knows English.")] = DEFAULT
    student: Annotated[
        str,
        typer.Option(
            help="'same' for a copy of the teacher's text tower, or a transformers encoder: a name on the hub or a folder."
        ),
    ] = "same"

    def arguments(self, job: "Job") -> tuple[Any, ...]:
        return list(SampleFile(self.captions)), self.student, job


@option_group
@dataclass(frozen=True)
class PrmcsInputs:
    captions: GoodCaptions
    images: Images
    model: Model = DEFAULT
    sentences: Annotated[
        Path | None, typer.Option(help="More good captions, whose photos are not at hand; a caption and its 'lang' each.")
    ] = None
    validate: Validate = None

    def arguments(self, job: "Job") -> tuple[Any, ...]:
        sentences = None if self.sentences is None else SampleFile(self.sentences)
        return _read(self.captions, self.images), job, _read(self.validate, self.images), sentences


class TrainCommand(NamedTuple):
    """A command of the table below: what it takes, what it does, and how it is used."""

    inputs: type
    help: str
    examples: str


COMMANDS = {
    "mclipscore": TrainCommand(
        MclipscoreInputs,
        "Tune a model on human ratings, with contrastive and Pearson losses (multilingual CLIPScore).",
        """
        caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/tuned
        caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/p --set 'losses.choice="pearson"'
        caplens train mclipscore captions.jsonl --ratings rated.jsonl --images photos --out runs/clip --model hf:ORG/NAME
        caplens score captions.jsonl --images photos --model runs/tuned/model
        """,
    ),
    "pacs": TrainCommand(
        PacsInputs,
        "Tune a model with generated images and captions as further positives (PAC-S).",
        """
        caplens augment captions.jsonl --images photos --out augmented --painter ORG/NAME --captioner ORG/NAME
        caplens train pacs augmented/captions.jsonl --images photos --out runs/pacs --model hf:openai/clip-vit-base-patch32
        caplens train pacs augmented/captions.jsonl --images photos --out runs/lora --set 'train.parts="lora"'
        caplens score captions.jsonl --images photos --metric pacs --model runs/pacs/model
        """,
    ),
    "distill": TrainCommand(
        DistillInputs,
        "Teach a text tower new languages from translations, without images (PR-MCS, M-CLIP).",
        """
        caplens train distill translations.jsonl --out runs/czech
        caplens train distill translations.jsonl --student ORG/ENCODER --model hf:ORG/NAME --out runs/student
        A line of translations.jsonl: {"id": "1", "caption": "Pes běží.", "lang": "cs", "source": "A dog runs."}
        """,
    ),
    "prmcs": TrainCommand(
        PrmcsInputs,
        "Teach a model's text tower to notice perturbed captions (PR-MCS).",
        """
        caplens train prmcs captions.jsonl --images photos --out runs/prmcs
        caplens train prmcs captions.jsonl --images photos --sentences more.jsonl --out runs/prmcs
        caplens train prmcs captions.jsonl --images photos --out runs/paper --preset paper
        caplens robustness held_out.jsonl --images photos --model runs/prmcs/model
        """,
    ),
}
MINI_EXAMPLES = """
caplens train mini --data data --out runs/mini
caplens train mini --data data --out runs/try --small
caplens train mini --data data --out runs/short --set distil.steps=500 --set align.steps=200
caplens score captions.jsonl --images photos --model runs/mini/model
"""


CAPTIONER_EXAMPLES = """
caplens train captioner captions.jsonl --images photos --out runs/captioner
caplens train captioner captions.jsonl --images photos --out runs/cider --start caplens-mini-captioner --set reward.steps=300
caplens caption photos -o captions.jsonl --captioner runs/captioner/model
"""


VIT_MT5_EXAMPLES = """
caplens train vit-mt5 captions.jsonl --images photos --vit google/vit-base-patch16-224 --mt5 google/mt5-base --out runs/xm
caplens caption photos -o captions.jsonl --captioner runs/xm/model --lang de,hi --beams 5
"""


def mini(
    data: Annotated[Path, typer.Option(help="The folder with flickr8k, multi30k and teacher; docs/mini.md describes it.")],
    out: Out,
    config: Annotated[Path | None, typer.Option(help="Another recipe. \\[default: the one that made caplens-mini]")] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A recipe of three minutes on two cores, to see whether all is well.")
    ] = False,
    change: Changes = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> dict[str, Any] | None:
    """Train a model like caplens-mini from photos and captions in several languages: minutes on a GPU, days without.

    The model is the folder OUT/model, to be used with --model OUT/model.
    """
    _require_libraries()
    from caplens.training.mini.recipe import MiniRecipe
    from caplens.training.mini.train import train_mini
    from caplens.training.recipes.recipe import read_recipe

    if small and config is not None:
        raise InputError("--small is a recipe of its own; leave --config off.")
    if not data.is_dir():
        raise InputError(f"{data}: there is no such folder of training data.")
    recipe = read_recipe(MiniRecipe, config, change or (), variant="small" if small else "")
    return _trained(train_mini(data, out, recipe, seed, device))


def captioner(
    captions: Annotated[Path, typer.Argument(help="Captions with 'image' and 'lang', in one language or several.")],
    images: Images,
    out: Out,
    model: Annotated[
        str,
        typer.Option(help="The model whose feature maps the captioner reads: caplens-mini, or a folder that caplens trained."),
    ] = DEFAULT,
    start: Annotated[
        str | None,
        typer.Option(help="A captioner to go on from, such as caplens-mini-captioner. \\[default: random weights]"),
    ] = None,
    config: Config = None,
    change: Changes = None,
    device: Device = "auto",
    seed: Seed = 0,
    tensorboard: Tensorboard = False,
) -> dict[str, Any] | None:
    """Train a captioner like caplens-mini-captioner; then, with --set reward.steps=…, with any metric as reward.

    The captioner is the folder OUT/model, to be used with 'caplens caption --captioner OUT/model'.
    """
    _require_libraries()
    from caplens.training.captioner.recipe import CaptionerRecipe
    from caplens.training.captioner.train import CaptionerJob, train_captioner
    from caplens.training.recipes.recipe import read_recipe

    recipe = read_recipe(CaptionerRecipe, config, change or ())
    job = CaptionerJob(model, out, recipe, seed, device, tensorboard, start)
    return _captioner_trained(train_captioner(_read(captions, images), job))


def vit_mt5(
    captions: Annotated[Path, typer.Argument(help="Captions with 'image' and 'lang', in one language or several.")],
    images: Images,
    vit: Annotated[str, typer.Option(help="A vision transformer: a name on the hub, or a folder.")],
    mt5: Annotated[str, typer.Option(help="An mT5: a name on the hub, or a folder.")],
    out: Out,
    config: Config = None,
    change: Changes = None,
    device: Device = "auto",
    seed: Seed = 0,
    tensorboard: Tensorboard = False,
) -> dict[str, Any] | None:
    """Train a captioner of the shape that Crossmodal-3600 used: a vision transformer and mT5.

    The captioner is the folder OUT/model, to be used with 'caplens caption --captioner OUT/model'.
    """
    _require_libraries()
    require("transformers", "Training mT5", "hf")
    from caplens.training.captioner.vit_mt5 import VitMt5Job, VitMt5Recipe, train_vit_mt5
    from caplens.training.recipes.recipe import read_recipe

    recipe = read_recipe(VitMt5Recipe, config, change or ())
    job = VitMt5Job(vit, mt5, out, recipe, seed, device, tensorboard)
    return _captioner_trained(train_vit_mt5(_read(captions, images), job))


def _captioner_trained(folder: Path) -> dict[str, Any]:
    info(f"the captioner is in {folder}; use it with: caplens caption IMAGES -o captions.jsonl --captioner {folder}")
    return {"model": str(folder)}


def _train_command(name: str, entry: TrainCommand) -> CommandFunction:
    """The function behind `caplens train NAME`."""

    def train(inputs: Any, run: RunOptions) -> dict[str, Any] | None:
        _require_libraries()
        from caplens.training.recipes.recipe import PRESETS, read_recipe
        from caplens.training.recipes.table import RECIPES
        from caplens.training.recipes.tuning import Job

        if not _is_main():
            # Of several processes that train together, one reports.
            logger.setLevel("WARNING")
        recipe_class, function = RECIPES[name].load()
        if run.config is not None and run.preset is not None:
            raise InputError("--preset and --config are two recipes; choose one.")
        variant = "" if run.preset in (None, PRESETS[0]) else str(run.preset)
        if variant and name not in _WITH_PAPER:
            raise InputError(f"{name} has no recipe {variant!r}; its own is that of the paper, where the paper says.")
        recipe = read_recipe(recipe_class, run.config, run.change or (), variant=variant)
        job = Job(inputs.model, run.out, recipe, run.seed, run.device, run.tensorboard)
        return _trained(function(*inputs.arguments(job)))

    train.__name__, train.__doc__ = name, f"{entry.help}\n\n{_WHERE}"
    train.__annotations__ = {"inputs": entry.inputs, "run": RunOptions, "return": dict[str, Any] | None}
    return train


def _require_libraries() -> None:
    for module in _LIBRARIES:
        require(module, "Training", "train")


def _read(path: Path | None, images: Path) -> list[Sample]:
    return [] if path is None else list(with_images(SampleFile(path), images))


def _is_main() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _trained(folder: Path) -> dict[str, Any] | None:
    if not _is_main():
        return None
    info(f"the model is in {folder}; use it with --model {folder}")
    return {"model": str(folder)}


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Train models.", rich_markup_mode="rich")
    command(group, examples=MINI_EXAMPLES)(mini)
    command(group, examples=CAPTIONER_EXAMPLES)(captioner)
    command(group, "vit-mt5", examples=VIT_MT5_EXAMPLES)(vit_mt5)
    for name, entry in COMMANDS.items():
        command(group, name, entry.examples)(_train_command(name, entry))
    app.add_typer(group, name="train")

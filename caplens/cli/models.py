"""The options of commands that encode images: which model, how it runs, and where vectors are kept."""

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from caplens.backbones.mini import DEFAULT
from caplens.cli import options
from caplens.cli.output import warn
from caplens.data.languages import base_language
from caplens.embed import Engine, open_engine
from caplens.embed.engine import LongTexts
from caplens.errors import InputError
from caplens.metrics.embedding import Prompt
from caplens.metrics.registry import looks_at_images
from caplens.progress import note

_PANEL = "Scores that look at the image"
_LANGUAGE = re.compile(r"([\w-]*)=")
_LARGEST_BATCH = 65_536
_ABOUT_MINI = (
    "caplens: scoring with caplens-mini, a small model for everyday photos and 12 languages, for research only. For scores to"
    " publish name a large model, e.g. --model openclip:hf-hub:laion/CLIP-ViT-H-14-frozen-xlm-roberta-large-laion5B-s13B-b90k"
    " ('caplens list models')."
)


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


class Models(NamedTuple):
    """What the user chose. The engine is opened inside the command, where progress is shown, if any of its metrics needs one."""

    engines: Callable[[Sequence[str]], list[Engine]]
    chosen: bool
    """Whether a model or a folder of images was named, so that scores which look at the image are wanted."""
    images: Path | None
    prompt: Prompt | None

    def open(self, metrics: Sequence[str]) -> Engine | None:
        """The one engine of commands that score with one model at a time."""
        found = self.engines(metrics)
        if len(found) > 1:
            raise InputError("one model at a time, please; only 'caplens bench' takes several.")
        return found[0] if found else None


def _models(
    model: Annotated[
        list[str] | None,
        _option(
            help="What encodes images and texts: hf:openai/clip-vit-base-patch32, … ('caplens list models')."
            " \\[default: caplens-mini]"
        ),
    ] = None,
    images: Annotated[Path | None, _option(help="The folder that the images' names are relative to.")] = None,
    prompt: Annotated[
        list[str] | None,
        _option(help="Goes before captions: TEXT for all, or LANG=TEXT for each language; none. \\[default: the metric's]"),
    ] = None,
    long: Annotated[LongTexts, _option(help="Texts longer than the model takes: cut them, or average their sentences.")] = "cut",
    device: Annotated[str, _option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, _option(help="The model's number format: fp32, bf16, fp16.")] = "fp32",
    batch_size: Annotated[
        int | None, _option(help="Images or texts at a time. \\[default: by device]", min=1, max=_LARGEST_BATCH)
    ] = None,
    workers: Annotated[int | None, _option(help="Threads that open images. \\[default: all processors]", min=1, max=256)] = None,
    store: Annotated[Path | None, _option(help="Where vectors are kept. \\[default: the user's cache]")] = None,
    no_store: Annotated[bool, _option("--no-store", help="Keep no vectors after the run.")] = False,
    offline: Annotated[bool, _option("--offline", help="Download nothing.")] = False,
    trust_remote_code: Annotated[bool, _option("--trust-remote-code", help="Run code that comes with the model.")] = False,
) -> Models:
    if no_store and store is not None:
        raise InputError("--store names a place for vectors and --no-store keeps none; choose one.")

    def engines(metrics: Sequence[str]) -> list[Engine]:
        needed = any(looks_at_images(name) for name in metrics)
        if not model and not needed:
            if images is not None:
                warn(["--images is for scores that look at the image; none of these does, and it is not used."])
            return []
        if not model:
            note(_ABOUT_MINI)
        return [
            open_engine(
                name,
                store=store,
                keep=not no_store,
                device=device,
                dtype=dtype,
                batch_size=batch_size,
                workers=workers,
                long=long,
                offline=offline,
                trust_remote_code=trust_remote_code,
            )
            for name in dict.fromkeys(model or [DEFAULT])
        ]

    return Models(engines, bool(model) or images is not None, images, _prompt(prompt))


def with_models(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options above; it gets what was chosen as `models`."""
    own, added = inspect.signature(command).parameters, inspect.signature(_models).parameters
    mine = [parameter for parameter in own.values() if parameter.name != "models"]

    def run(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in added}
        command(**given, models=_models(**chosen))

    return options.in_place_of(command, run, [*mine, *added.values()])


def _prompt(given: list[str] | None) -> Prompt | None:
    """`--prompt "A photo of "`, or `--prompt "en=A photo of " --prompt "de=Ein Foto von "`."""
    if not given:
        return None
    named = [_LANGUAGE.match(text) for text in given]
    if not any(named):
        if len(given) > 1:
            raise InputError("give one prompt for all captions, or LANG=TEXT for each language.")
        return "" if given[0].lower() == "none" else given[0]
    prompts: dict[str, str] = {}
    for match, text in zip(named, given, strict=True):
        if match is None:
            raise InputError("give each prompt its language (LANG=TEXT), or one prompt for all captions.")
        lang = base_language(match[1])
        if lang in prompts:
            raise InputError(f"two prompts are given for {lang!r}.")
        prompts[lang] = text[match.end() :]
    return prompts

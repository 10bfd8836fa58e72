"""`caplens mid`: the statistics of reference pairs that MID is computed with."""

from pathlib import Path
from typing import Annotated

import typer

from caplens.api import fit_mid
from caplens.cli.command import Outcome, command
from caplens.cli.options import Lang, MetricOptions, ModelOptions, ReferencesOption
from caplens.cli.output import info
from caplens.data.replacing import ensure_apart, ensure_writable

EXAMPLES = """
caplens mid fit train.jsonl mid.npz --images photos --model hf:openai/clip-vit-base-patch32
caplens score captions.jsonl --images photos -m mid --mid mid.npz --model hf:openai/clip-vit-base-patch32
"""


def fit(
    captions: Annotated[Path, typer.Argument(help="Captions or references of images, in any format; best 30,000 or more.")],
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    model: ModelOptions,
    references: ReferencesOption = None,
    lang: Lang = None,
) -> Outcome:
    """Fit the Gaussians of MID on pairs of an image and each of its references, or its caption where it has none."""
    ensure_writable(target)
    ensure_apart(target, captions, references)
    options = model.scoring(MetricOptions(), lang, ["mid"])
    statistics = fit_mid(captions, references=references, images=model.images, options=options)
    statistics.save(target)
    info(f"{statistics.count:,} pairs of vectors of {statistics.dim} numbers, by {statistics.model}; written to {target}")
    about = {"written": str(target), "pairs": statistics.count, "model": statistics.model, "label": statistics.label}
    return Outcome({**about, "left_out": statistics.left_out}, 3 if statistics.left_out else 0)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help="Fit what the mutual information of images and captions (MID) needs."
    )
    command(group, examples=EXAMPLES)(fit)
    app.add_typer(group, name="mid")

"""`caplens robustness`: how much metrics notice that captions were made worse."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import (
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    PerturbationProtocol,
    Perturbations,
    ReferencesOption,
    Resamples,
    Seed,
    listed,
)
from caplens.cli.output import info, warn, write_result
from caplens.data import Sample, SampleFile, write_samples
from caplens.data.replacing import ensure_writable
from caplens.errors import InputError
from caplens.perturbation.datasets import load_captions
from caplens.stats import RESAMPLES

EXAMPLES = """
caplens robustness captions.jsonl --images photos -m clipscore
caplens robustness captions.jsonl -r references.json -m cider --perturbation jumble,removal -o robustness.json
caplens robustness captions.jsonl --images photos --protocol gentle
caplens robustness --data-set multi30k --data multi30k --lang de --images flickr30k-images -m clipscore
caplens robustness --data-set m-finecap3k --data m-finecap3k --part few-shot --export-items few.jsonl
"""


def robustness(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    captions: Annotated[
        Path | None, typer.Argument(help="Any file of good captions; without --data-set it must be given.")
    ] = None,
    data_set: Annotated[
        str | None, typer.Option(help="Captions of a paper's data set instead: coco-3k, vizwiz, flickr8k, multi30k, m-finecap3k.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The folder with that data set's own files.")] = None,
    part: Annotated[str, typer.Option(help="all, or of a split one to nine: few-shot (300 captions) or rest.")] = "all",
    export_items: Annotated[Path | None, typer.Option(help="Write the captions of the data set to this file, and stop.")] = None,
    perturbation: Perturbations = None,
    protocol: PerturbationProtocol = "paper",
    references: ReferencesOption = None,
    lang: Lang = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Perturb captions, and measure how far scores drop and how often the worse caption scores lower, by language.

    CSV, TSV and JSONL hold one row for each metric, language and perturbation, with intervals by bootstrap over images.
    """
    form = output.checked(captions, references)
    samples = _captions(captions, data_set, data, lang, seed, part)
    if export_items is not None:
        ensure_writable(export_items)
        info(f"{write_samples(samples, export_items):,} captions written to {export_items}")
        return
    result = api.robustness(
        samples,
        listed(metrics.metric),
        listed(perturbation) or ("all",),
        references=references,
        images=models.images,
        resamples=resamples,
        seed=seed,
        protocol=protocol,
        options=models.scoring(metrics, lang),
    )
    inputs = {"captions": captions, "references": references, "images": models.images, "lang": lang}
    write_result(result, output.output, form, None if captions is None else inputs)
    if result.failed:
        warn([f"{result.failed} captions could not be scored and were left out."])
        raise typer.Exit(3)


def _captions(
    captions: Path | None, data_set: str | None, data: Path | None, lang: str | None, seed: int, part: str
) -> Iterable[Sample]:
    """The captions of a file, or of a data set."""
    if (captions is None) == (data_set is None):
        raise InputError("give a file of captions, or a data set with --data-set; not both.")
    if captions is not None:
        if part != "all" or data is not None:
            raise InputError("--data and --part are for captions of --data-set.")
        return SampleFile(captions, mark_repeats=True)
    if data is None or not data.is_dir():
        raise InputError("--data must name the folder with the files of the data set.")
    return load_captions(str(data_set), data, lang or "en", seed, part)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(robustness)

"""`caplens crossmodal`: captioners on Crossmodal-3600, language by language."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import Correction, MetricOptions, ModelOptions, OutputOptions, Resamples, Seed, listed
from caplens.cli.output import write_result, write_tables
from caplens.comparison import crossmodal3600
from caplens.errors import InputError
from caplens.results.base import json_object
from caplens.stats import CORRECTION, RESAMPLES
from caplens.version import __version__

EXAMPLES = """
caplens crossmodal --data xm3600
caplens crossmodal a.jsonl b.jsonl --data xm3600
caplens crossmodal a.jsonl --data xm3600 --images xm3600/images -m cider-original,clipscore -o a.json
caplens crossmodal a.jsonl --data xm3600 --region de,ja,sw --by-region
caplens crossmodal a.jsonl b.jsonl --data xm3600 --subset 600 --seed 1
"""


def crossmodal(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    data: Annotated[Path, typer.Option(help="The folder with captions.jsonl of Crossmodal-3600.")],
    captions: Annotated[
        list[Path] | None, typer.Argument(help="Captions of a system each, with 'lang' and the image's key as 'id'.")
    ] = None,
    region: Annotated[
        list[str] | None, typer.Option(help="Count only images chosen for regions of these languages (de,ja). \\[default: all]")
    ] = None,
    by_region: Annotated[bool, typer.Option("--by-region", help="Print a table of languages by regions too.")] = False,
    subset: Annotated[
        int | None, typer.Option(min=1, help="Count a random subset of so many images; 600 are the paper's XM600.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Test each system against this one. \\[default: every two are tested]")
    ] = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    correction: Correction = CORRECTION,
) -> None:
    """Score captioners against Crossmodal-3600, whose references are in 36 languages, and test their differences.

    Without captions: what the data set holds, beside table 1 of its paper. A system is named after its file. Without --metric:
    cider-original, as the paper has it, cider (CIDEr-D), and with --images or a --model clipscore too.
    """
    files = captions or []
    form = output.checked(*files)
    if not files:
        if region or by_region or subset is not None:
            raise InputError("--region, --by-region and --subset are for captions of systems; name their files.")
        statistics = crossmodal3600.statistics(data)
        document = {
            "caplens": __version__,
            "benchmark": crossmodal3600.NAME,
            "statistics": [json_object(row) for row in statistics],
        }
        write_tables([crossmodal3600.statistics_table(statistics)], output.output, form, lambda: document)
        return
    systems = {path.stem: path for path in files}
    if len(systems) < len(files):
        raise InputError("two files of captions have the same name; a system is named after its file.")
    result = api.crossmodal(
        systems,
        data,
        listed(metrics.metric),
        images=models.images,
        resamples=resamples,
        seed=seed,
        correction=correction,
        regions=listed(region),
        subset=subset,
        baseline=baseline,
        options=models.scoring(metrics),
    )
    result.by_region = by_region
    write_result(result, output.output, form)
    if result.failed:
        raise typer.Exit(3)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(crossmodal)

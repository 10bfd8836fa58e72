"""`caplens plan`: how long a job will take and what it will cost."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import ColumnOptions, Lang, MetricOptions, ModelOptions, OutputOptions, listed
from caplens.cli.output import write_result
from caplens.data.columns import parsed_columns
from caplens.metrics.defaults import default_metrics
from caplens.partitions.planning import READ_ROWS, SAMPLE

EXAMPLES = """
caplens plan 'parts/*.parquet' --images photos -m clipscore --model hf:openai/clip-vit-base-patch32
caplens plan captions.jsonl --images photos -m clipscore,cider --price 0.10
caplens plan 's3://bucket/captions/*.parquet' --images s3://bucket/photos -m clipscore --machines machines.toml --count 8
"""


def plan(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    columns: ColumnOptions,
    captions: Annotated[Path, typer.Argument(help="What 'caplens score' with a folder as output takes.")],
    lang: Lang = None,
    machines: Annotated[
        Path | None,
        typer.Option(help="A TOML file of kinds of machines: [[machine]] with name, cores and price, gpu, and rates by model."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Machines that share the job.")] = 1,
    price: Annotated[float | None, typer.Option(min=0, help="US dollars for an hour of this machine.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Images that are encoded to measure how fast the model is here.")] = SAMPLE,
    read_rows: Annotated[
        int,
        typer.Option(min=1, help="Captions that are read to count different images and texts; the rest is taken to be alike."),
    ] = READ_ROWS,
) -> None:
    """How long it takes to score captions, and what it costs: here, and on other kinds of machines.

    Captions are read to count different images and texts, and a few are scored to measure this machine; no scores are written.
    """
    form = output.checked(captions, machines)
    names = listed(metrics.metric) or default_metrics("score", with_images=models.images is not None or bool(models.model))
    result = api.plan_job(
        captions, names, images=models.images, columns=parsed_columns(columns.columns or []), machines=machines,
        machine_count=count, price=price, sample=sample, read_rows=read_rows, options=models.scoring(metrics, lang, names),
    )  # fmt: skip
    write_result(result, output.output, form, show=True)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(plan)

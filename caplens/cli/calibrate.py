"""`caplens calibrate`: what scores mean, language by language."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.api.calibrating import COVERAGE
from caplens.calibration.levels import DRAWS
from caplens.cli.command import command
from caplens.cli.options import ColumnOptions, Lang, MetricOptions, ModelOptions, OutputOptions, ReferencesOption, Seed, listed
from caplens.cli.output import write_result

EXAMPLES = """
caplens calibrate good.jsonl --images photos -o calibration.json
caplens calibrate good.jsonl --images photos -m clipscore,pac-s --model hf:openai/clip-vit-base-patch32 -o calibration.json
caplens calibrate good.jsonl --images photos --rated rated.jsonl --coverage 0.9 -o calibration.json
caplens score captions.jsonl --images photos --calibration calibration.json
"""


def calibrate(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    columns: ColumnOptions,
    captions: Annotated[Path, typer.Argument(help="Captions that are known to be good, of at least 20 images a language.")],
    references: ReferencesOption = None,
    lang: Lang = None,
    rated: Annotated[
        Path | None, typer.Option(help="Captions with 'ratings', good and bad: gives every score an interval of ratings.")
    ] = None,
    coverage: Annotated[float, typer.Option(help="The share of ratings that these intervals contain.")] = COVERAGE,
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Other images that each caption is scored with.")] = DRAWS,
    about: Annotated[
        str | None, typer.Option(help="What the captions are, in a few words. \\[default: the name of the file]")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Measure what scores mean: the level of chance (captions with other images) and that of good captions, by language.

    'caplens score --calibration' then says of every caption, better than how many captions of other images it is, and where it
    stands among good captions of its language. For caplens-mini, such levels are inside the package.
    """
    form = output.checked(captions, references, rated)
    result = api.calibrate(
        columns.samples(captions),
        listed(metrics.metric),
        references=references,
        images=models.images,
        rated=rated,
        coverage=coverage,
        draws=draws,
        seed=seed,
        about=about or captions.stem,
        options=models.scoring(metrics, lang),
    )
    write_result(result, output.output, form, show=True)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(calibrate)

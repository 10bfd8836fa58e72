"""`caplens check`: which captions are bad, and why."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import Outcome, command
from caplens.cli.options import (
    CalibrationOption,
    ColumnOptions,
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ReferencesOption,
    Seed,
)
from caplens.cli.output import write_result
from caplens.text.identification import load_language_model

EXAMPLES = """
caplens check captions.jsonl --images photos
caplens check alt-texts.xlsx --images photos -o check.html
caplens check alt-texts.xlsx --images photos --columns "caption=Alt-Text,image=Datei" -o check.xlsx
caplens check captions.jsonl --lang de -o check.csv
"""


def check(
    models: ModelOptions,
    output: OutputOptions,
    columns: ColumnOptions,
    captions: Annotated[Path, typer.Argument(help="Captions in any format: JSONL, CSV, Excel, Parquet, a folder of photos, ….")],
    references: ReferencesOption = None,
    lang: Lang = None,
    langid: Annotated[
        Path | None, typer.Option(help="A file of fastText that identifies languages. \\[default: py3langid]")
    ] = None,
    calibration: CalibrationOption = None,
    seed: Seed = 0,
) -> Outcome | None:
    """Find captions that are bad, worst first, each with reasons that a person understands.

    By rules: empty, file names, placeholders, markup, encoding damage, repeated words, cut off, too short or long, wrong writing
    system or language, duplicates. With images: captions that fit theirs no better than captions of other images do, the image
    that they fit better, and words that nothing in the image supports. With references: captions that are unlike them.

    Verdicts: fix (sure), look (a person decides), fine. -o FILE.html writes a page, .xlsx or .csv a table to hand on.
    """
    form = output.checked(captions, references)
    result = api.check(
        columns.samples(captions),
        images=models.images,
        references=references,
        calibration=calibration,
        language_model=None if langid is None else load_language_model(langid),
        seed=seed,
        options=models.scoring(MetricOptions(), lang, ["clipscore"] if models.images else []),
    )
    inputs = {"captions": captions, "references": references, "images": models.images, "lang": lang}
    write_result(result, output.output, form, inputs, show=True)
    return None


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(check)

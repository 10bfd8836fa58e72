"""`caplens check`: which captions are bad, and why."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.captioners.mini import DEFAULT as CAPTIONER
from caplens.cli.command import command
from caplens.cli.options import (
    CalibrationOption,
    ColumnOptions,
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    PageLang,
    ReferencesOption,
    Seed,
)
from caplens.cli.output import Format, info, warn, write_result
from caplens.cli.report import PAGES, check_page
from caplens.report.catalogue import PageLanguage
from caplens.text.identification import load_language_model

EXAMPLES = """
caplens check captions.jsonl --images photos
caplens check alt-texts.xlsx --images photos -o check.html
caplens check alt-texts.xlsx --images photos --columns "caption=Alt-Text,image=Datei" -o check.xlsx
caplens check captions.jsonl --lang de -o check.csv
caplens check alt-texts.xlsx --images photos --suggest -o check.html
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
    suggest: Annotated[bool, typer.Option("--suggest", help="Say what the photos of bad captions seem to show.")] = False,
    captioner: Annotated[
        str, typer.Option(help="What says so, as 'caplens caption' takes it; the one inside the package writes 12 languages.")
    ] = CAPTIONER,
    title: Annotated[str, typer.Option(help="The title of the page, where the output is one.")] = "Captions to fix",
    page_lang: PageLang = "en",
    seed: Seed = 0,
) -> None:
    """Find captions that are bad, worst first, each with reasons that a person understands.

    By rules: empty, file names, placeholders, markup, encoding damage, repeated words, cut off, too short or long, wrong writing
    system or language, duplicates. With images: captions that fit theirs no better than captions of other images do, the image
    that they fit better, and words that nothing in the image supports. With references: captions that are unlike them.

    Verdicts: fix (sure), look (a person decides), fine. -o FILE.html writes a page, .xlsx or .csv a table to hand on.
    """
    page = output.output if output.output is not None and output.output.suffix.lower() in PAGES else None
    if page is None:
        form = output.checked(captions, references, calibration)
    else:
        check_page(page, captions, references, calibration)
    if suggest and models.images is None:
        warn(["--suggest looks at images; name their folder with --images, unless the file has their paths."])
    if captioner != CAPTIONER and not suggest:
        warn(["--captioner is for --suggest, and is not used."])
    result = api.check(
        columns.samples(captions),
        images=models.images,
        references=references,
        calibration=calibration,
        language_model=None if langid is None else load_language_model(langid),
        suggest=captioner if suggest else None,
        seed=seed,
        options=models.scoring(MetricOptions(), lang, ["clipscore"] if models.images else []),
    )
    if page is None:
        inputs = {"captions": captions, "references": references, "images": models.images, "lang": lang}
        said = PageLanguage(page_lang)
        in_rows = form in (Format.csv, Format.tsv, Format.xlsx)
        write_result(result.translated(said) if in_rows else result, output.output, form, inputs, show=True)
    else:
        api.write_report({captions.stem: result}, page, title=title, page_lang=page_lang)
        info(f"written to {page}")
        write_result(result, None, Format.table)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(check)

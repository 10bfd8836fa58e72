"""`caplens caption`: captions of images."""

import math
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.api.captioning import BEAMS
from caplens.captioners.base import SearchOptions
from caplens.captioners.mini import DEFAULT
from caplens.captioners.registry import open_captioner
from caplens.cli.command import Outcome, command
from caplens.cli.options import AllowFormulas, MetricOptions, ModelOptions, ReferencesOption, Seed, listed
from caplens.cli.output import info, warn
from caplens.data import write_samples
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.data.writing import format_of
from caplens.errors import InputError
from caplens.metrics.options import ScoringOptions

EXAMPLES = """
caplens caption photos -o captions.jsonl
caplens caption photos -o captions.jsonl --lang de,ja --nbest 10 --rerank clipscore
caplens caption test.jsonl --images photos -o captions.jsonl --captioner hf:Salesforce/blip-image-captioning-base --beams 5
caplens caption photos -o captions.jsonl --captioner endpoint:http://localhost:8000/v1,model=qwen2.5-vl --lang sw
caplens score captions.jsonl --images photos
"""


def caption(
    models: ModelOptions,
    metrics: MetricOptions,
    images_or_captions: Annotated[
        Path, typer.Argument(metavar="IMAGES", help="A folder of photos, or a file whose rows have images; its references stay.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .jsonl, .csv, .tsv, .xlsx or .parquet.")],
    captioner: Annotated[
        str,
        typer.Option(help="caplens-mini-captioner, a folder, hf:ORG/NAME, vit-mt5:FOLDER or endpoint:URL,model=NAME."),
    ] = DEFAULT,
    lang: Annotated[
        list[str] | None, typer.Option(help="Languages of captions (de,ja). \\[default: that of each row, or English]")
    ] = None,
    references: ReferencesOption = None,
    beams: Annotated[int, typer.Option(min=1, max=100, help="Beams of the search.")] = BEAMS,
    nbest: Annotated[int, typer.Option(min=1, max=100, help="Captions of each image to choose from.")] = 1,
    rerank: Annotated[
        str | None, typer.Option(help="The metric that chooses one of --nbest captions. \\[default: the most probable]")
    ] = None,
    longest: Annotated[int, typer.Option(min=1, max=4096, help="Tokens of a caption, at most.")] = SearchOptions().longest,
    question: Annotated[
        str | None, typer.Option(help="What models that are asked in words are asked; {language} is the language's name.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 16,
    prices: Annotated[
        str | None, typer.Option(help="Of an endpoint: dollars for a million tokens in and out, as in 0.15,0.60.")
    ] = None,
    allow_formulas: AllowFormulas = False,
    seed: Seed = 0,
) -> Outcome:
    """Caption images in one language or several.

    Captions are kept by content: no image is captioned twice in the same way, and a stopped command goes on. Each row says which
    captioner wrote it, with what probability, and, with --nbest, the others. The exit status is 3 where images have no caption.
    """
    format_of(output)
    ensure_apart(output, images_or_captions, references)
    ensure_writable(output)
    cost = _prices(prices)
    options = models.scoring(metrics, None, [rerank]) if rerank else ScoringOptions.of(**models.keywords(metrics))
    opened = open_captioner(captioner, SearchOptions(max(beams, nbest), longest, question, seed), options.load_options())
    samples, report = api.caption(
        images_or_captions, opened, langs=listed(lang) or (), references=references, images=models.images, nbest=nbest,
        rerank=rerank, batch=batch, options=options,
    )  # fmt: skip
    count = write_samples(samples, output, allow_formulas=allow_formulas)
    if hasattr(opened, "report_cost"):
        opened.report_cost(cost)
    again = f", {report.reused:,} of them from an earlier run" if report.reused else ""
    info(f"{count:,} captions{again} written to {output}; licence of the captioner: {opened.licence}")
    if report.gain is not None:
        info(
            f"{rerank} chose another caption than the most probable one for {report.changed:,} images; its mean rose by"
            f" {report.gain:.4f}"
        )
    warn([f"{number:,} images have no caption: {why}." for why, number in report.failed.items()])
    failed = sum(report.failed.values())
    content = {
        "written": str(output), "captions": count - failed, "failed": failed, "reused": report.reused, "changed": report.changed,
        "gain": report.gain,
    }  # fmt: skip
    return Outcome(content, 3 if failed else 0)


def _prices(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
        if not (0 <= first < math.inf and 0 <= second < math.inf):
            raise ValueError
    except ValueError:
        raise InputError(f"--prices takes two numbers such as 0.15,0.60, not {text!r}.") from None
    return first, second


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(caption)

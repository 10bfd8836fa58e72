"""`caplens convert`: captions from one format into another."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli.command import command
from caplens.cli.options import AllowFormulas, ReferencesOption
from caplens.cli.output import info
from caplens.data import SampleFile, read_references, write_samples
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.data.writing import FORMATS

EXAMPLES = """
caplens convert results.json captions.jsonl --references captions_val2014.json
caplens convert captions.jsonl results.json --to coco --references-output annotations.json
caplens convert captions.csv captions.parquet
"""


def convert(
    source: Annotated[Path, typer.Argument(help="Any file of captions; the format is detected from content.")],
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    to: Annotated[str | None, typer.Option(help=f"{', '.join(FORMATS)}. \\[default: by the target's suffix]")] = None,
    references: ReferencesOption = None,
    references_output: Annotated[Path | None, typer.Option(help="Where coco and dictionary put the references.")] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Leave out what the format cannot hold.")] = False,
    allow_formulas: AllowFormulas = False,
) -> dict[str, Any]:
    """Convert captions between formats without loss.

    What a format cannot hold is an error unless --lossy allows leaving it out.
    """
    for output in (target, references_output):
        if output is not None:
            ensure_writable(output)
            ensure_apart(output, source, references)
    samples = SampleFile(source, caption_required=False)
    joined = samples if references is None else read_references(references).joined(samples)
    count = write_samples(joined, target, to, references_output, lossy=lossy, allow_formulas=allow_formulas)
    info(f"{count:,} samples written to {target}")
    return {"written": str(target), "samples": count}


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(convert)

"""`caplens count-df`: document frequencies for CIDEr, counted once and kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli.command import command
from caplens.cli.options import Lang, TokenizerOption
from caplens.cli.output import info
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.metrics.document_frequency import DocumentFrequency

EXAMPLES = """
caplens count-df captions_val2014.json coco-df.json
caplens score captions.jsonl -m cider --df coco-df.json
"""


def count_df(
    references: Annotated[Path, typer.Argument(help="A file of references, in any format.")],
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    lang: Lang = None,
    tokenizer: TokenizerOption = None,
) -> dict[str, Any]:
    """Count the sets of references that each n-gram occurs in, for CIDEr on few captions."""
    ensure_writable(target)
    ensure_apart(target, references)
    frequency = DocumentFrequency.load(references, tokenizer, lang)
    frequency.save(target)
    info(f"{len(frequency.counts):,} n-grams of {frequency.documents:,} images ({frequency.lang}) written to {target}")
    return {"written": str(target), "ngrams": len(frequency.counts), "images": frequency.documents, "lang": frequency.lang}


def register(app: typer.Typer) -> None:
    command(app, "count-df", EXAMPLES)(count_df)

"""`caplens df`: document frequencies for CIDEr, counted once and kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import say
from caplens.data.files import ensure_apart, ensure_writable
from caplens.metrics.document_frequency import DocumentFrequency

EXAMPLES = """
[bold]Example[/bold]

caplens df captions_val2014.json coco-df.json

caplens score captions.jsonl -m cider --df coco-df.json
"""


def df(
    references: Annotated[Path, typer.Argument(help="A file of references, in any format.")],
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    lang: options.Lang = None,
    tokenizer: options.Tokenizer = None,
    quiet: options.Quiet = False,
) -> dict[str, Any]:
    """Count in how many sets of references each n-gram stands, for CIDEr on few captions."""
    ensure_writable(target)
    ensure_apart(target, references)
    with progress_bar(quiet):
        frequency = DocumentFrequency.load(references, tokenizer, lang)
    frequency.save(target)
    say(f"{len(frequency.counts):,} n-grams of {frequency.documents:,} images ({frequency.lang}) written to {target}")
    return {"written": str(target), "ngrams": len(frequency.counts), "images": frequency.documents, "lang": frequency.lang}

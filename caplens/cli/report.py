"""`caplens report`: results as one page to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli.command import command
from caplens.cli.options import PageLang
from caplens.cli.output import info
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.errors import InputError

EXAMPLES = """
caplens score captions.jsonl --images photos -o scores.json
caplens report scores.json -o report.html
caplens report scores.json robustness.json runs/tuned/log.jsonl -o report.html --title "Captions of March"
caplens report bench.json --data flickr8k --images photos -o report.html
caplens report emscore.json --moments video7 -o report.html
caplens report scores.json --page-lang de -o bericht.html
"""
PAGES = (".html", ".htm")


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            help="JSON of score, check, compare, bench, agreement, crossmodal, robustness, drift or leakage, and log.jsonl of"
            " training runs."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The title of the page.")] = "caplens report",
    captions: Annotated[
        list[Path] | None,
        typer.Option(help="The captions, if they are not where the results say; once for each system, if there are several."),
    ] = None,
    references: Annotated[Path | None, typer.Option("--references", "-r", help="The references, likewise.")] = None,
    images: Annotated[Path | None, typer.Option(help="The folder of the images, likewise.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of a benchmark's files, likewise.")] = None,
    moments: Annotated[
        list[str] | None,
        typer.Option(help="The id of a caption of a video: shows which moment supports which of its words. May be repeated."),
    ] = None,
    page_lang: PageLang = "en",
) -> dict[str, Any]:
    """Make one HTML file of results: tables, plots, and a gallery of the captions that matter.

    The file needs nothing else, and can be opened offline, mailed and printed. Captions and images are read again from the files
    that the results name, to be shown; without them there is no gallery.
    """
    check_page(output, *results, *(captions or []), references)
    from caplens.report.documents import InputPaths, read_documents
    from caplens.report.page import write_page

    documents = [document for path in results for document in read_documents(path)]
    write_page(documents, output, InputPaths(captions or [], references, images, data), title, moments or [], page_lang)
    info(f"written to {output}")
    return {"report": str(output), "results": len(documents)}


def check_page(output: Path, *inputs: Path | None) -> None:
    """Fail before any work if the page cannot be written."""
    if output.suffix.lower() not in PAGES:
        raise InputError(f"{output}: a report is an HTML file; name it something.html.")
    ensure_apart(output, *inputs)
    ensure_writable(output)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(report)

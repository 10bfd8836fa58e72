"""`caplens demo`: what caplens does, on the example that comes with it."""

import webbrowser
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import Format, deliver, say, warn
from caplens.cli.report import choose_page
from caplens.report.views import languages_table, samples_table, scores_table, systems_table

EXAMPLES = """
[bold]Examples[/bold]

caplens demo

caplens demo -o tour.html --open
"""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("caplens-demo.html"),
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    quiet: options.Quiet = False,
    format: options.OutputFormat = None,
) -> None:
    """Score the example that comes with caplens, offline and with the built-in model, and write a report to look at.

    The example is 45 captions of five photos in nine languages. They are scored, compared with captions of other photos, and
    perturbed.
    """
    choose_page(output)
    from caplens.report.documents import Document
    from caplens.report.page import write_page

    with progress_bar(quiet), as_file(files("caplens").joinpath("examples")) as shipped:
        good, bad = shipped / "good.jsonl", shipped / "bad.jsonl"
        scores = api.score(good, options.OF_EXAMPLE, images=shipped)
        contest = api.compare({"good": good, "bad": bad}, options.OF_EXAMPLE, images=shipped)
        noticed = api.robustness(good, ["clipscore"], images=shipped)
        documents = [
            Document("The example", scores, {"captions": good.name, "images": "."}, shipped),
            Document("Good captions and bad", contest, {"systems": {"good": good.name, "bad": bad.name}, "images": "."}, shipped),
            Document("The example, perturbed", noticed),
        ]
        write_page(documents, output, title="caplens demo")
    by_language, compared = languages_table(scores), systems_table(contest)
    compared.title, compared.notes = "The same photos with their own captions (good) and with those of others (bad)", []
    tables = [scores_table(scores), *([by_language] if by_language else []), compared]
    deliver(
        None, format or Format.table, lambda: {"report": str(output), **scores.to_dict()}, tables, lambda: samples_table(scores)
    )
    say(f"The report is in {output}; open it in a browser. Next: caplens score YOUR_CAPTIONS --images YOUR_PHOTOS")
    if open_it and not webbrowser.open(output.resolve().as_uri()):
        warn(["there is no browser to open the report in."])

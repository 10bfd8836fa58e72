"""`caplens demo`: what caplens does, on the example inside the package."""

import webbrowser
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import FormatOptions
from caplens.cli.output import info, warn, write_tables
from caplens.cli.report import check_page
from caplens.metrics.defaults import EXAMPLE_METRICS

EXAMPLES = """
caplens demo
caplens demo -o tour.html --open
"""


def demo(
    shown: FormatOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("caplens-demo.html"),
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Score the example inside the package, offline and with the built-in model, and write a report to look at.

    The example is 45 captions of five photos in nine languages. They are scored, compared with captions of other photos, and
    perturbed.
    """
    check_page(output)
    form = shown.checked()
    from caplens.report.documents import Document
    from caplens.report.page import write_page

    with as_file(files("caplens").joinpath("examples")) as folder:
        good, bad = folder / "good.jsonl", folder / "bad.jsonl"
        scores = api.score(good, EXAMPLE_METRICS, images=folder)
        comparison = api.compare({"good": good, "bad": bad}, EXAMPLE_METRICS, images=folder)
        robustness = api.robustness(good, ["clipscore"], images=folder)
        inputs = {"systems": {"good": good.name, "bad": bad.name}, "images": "."}
        documents = [
            Document("The example", scores, {"captions": good.name, "images": "."}, folder),
            Document("Good captions and bad", comparison, inputs, folder),
            Document("The example, perturbed", robustness),
        ]
        write_page(documents, output, title="caplens demo")
    systems = comparison.systems_table()
    systems.title, systems.notes = "The same photos with their own captions (good) and with those of others (bad)", []
    write_tables([*scores.tables(), systems], None, form, lambda: {"report": str(output), **scores.to_dict()}, scores.to_rows)
    info(f"The report is in {output}; open it in a browser. Next: caplens score YOUR_CAPTIONS --images YOUR_PHOTOS")
    if open_it and not webbrowser.open(output.resolve().as_uri()):
        warn(["there is no browser to open the report in."])


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(demo)

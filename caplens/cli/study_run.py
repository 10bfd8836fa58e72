"""`caplens study-run`: captioners, languages and metrics compared, from one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.api.experiments import run_experiment
from caplens.cli.command import command
from caplens.cli.output import Format, info, write_result

EXAMPLES = """
caplens study-run study.toml
"""


def study_run(
    study: Annotated[
        Path, typer.Argument(help="A TOML file: images, output, metrics, references, langs, side_by_side, … and [systems].")
    ],
) -> dict[str, Any]:
    """Caption images with several captioners in several languages, compare them by several metrics, and write a page.

    A minimal file: images = "photos", output = "out", metrics = ["clipscore"] and, below [systems], two lines of name =
    "captioner": a name that 'caplens caption' takes, or a file of captions. With side_by_side = 50, a study is made of the images
    on which metrics disagree most about the two best systems. docs/captioners.md has an example with all settings. A stopped
    command goes on.
    """
    report = run_experiment(study)
    write_result(report.comparison, None, Format.table)
    info(f"the page is {report.page}")
    for place, token in report.studies.items():
        if token is not None:
            info(f"the owner's link of the study {place}, which is not shown again: /owner/join/{token}")
        info(f"serve the study: caplens study serve {place}")
    owners = {str(place): None if token is None else f"/owner/join/{token}" for place, token in report.studies.items()}
    return {"page": str(report.page), "studies": owners}


def register(app: typer.Typer) -> None:
    command(app, "study-run", examples=EXAMPLES)(study_run)

"""`caplens leakage`: which images of a benchmark were trained on."""

from pathlib import Path
from typing import Annotated

import typer

from caplens.bench import find_leaks, get_benchmark
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import choose_format, deliver
from caplens.report import Table

EXAMPLES = """
[bold]Examples[/bold]

caplens leakage flickr8k-expert --data flickr8k --training flickr8k/train.txt

caplens leakage pascal-50s --data pascal50s --images VOC2012/JPEGImages --training my-training-images
"""


def leakage(
    name: Annotated[str, typer.Argument(help="A benchmark; 'caplens list benchmarks' shows them.")],
    data: Annotated[Path, typer.Option(help="The folder with the data set's own files.")],
    training: Annotated[Path, typer.Option(help="A folder of images, or a file with a name or path on each line.")],
    images: Annotated[Path | None, typer.Option(help="The folder of the benchmark's images.")] = None,
    lang: Annotated[str | None, typer.Option(help="The language of the benchmark's captions.")] = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the images of a benchmark that are among training images, by name and by content.

    The exit status is 3 when any is.
    """
    form = choose_format(output, format, training)
    with progress_bar(quiet):
        found = find_leaks(get_benchmark(name), data, training, images, lang)
    content = set(found.same_content)
    rows = [[image, "yes" if image in found.same_name else "", "yes" if image in content else ""] for image in found.leaked]
    notes = [
        f"{len(found.leaked):,} of the {found.images:,} images of {name} are among {found.trained:,} training images;"
        f" the contents of {found.compared:,} could be compared."
    ]
    deliver(output, form, found.to_dict, [Table(["image", "same name", "same content"], rows, notes=notes)])
    if found.leaked:
        raise typer.Exit(3)

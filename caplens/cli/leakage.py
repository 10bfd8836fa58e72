"""`caplens leakage`: which images of a benchmark were trained on."""

from pathlib import Path
from typing import Annotated

import typer

from caplens.benchmarks.leakage import find_leaks
from caplens.benchmarks.registry import get_benchmark
from caplens.cli.command import command
from caplens.cli.options import OutputOptions
from caplens.cli.output import write_result

EXAMPLES = """
caplens leakage flickr8k-expert --data flickr8k --training flickr8k/train.txt
caplens leakage pascal-50s --data pascal50s --images VOC2012/JPEGImages --training my-training-images
"""


def leakage(
    output: OutputOptions,
    name: Annotated[str, typer.Argument(help="A benchmark; 'caplens list benchmarks' shows them.")],
    data: Annotated[Path, typer.Option(help="The folder with the data set's own files.")],
    training: Annotated[Path, typer.Option(help="A folder of images, or a file with one name or path per line.")],
    images: Annotated[Path | None, typer.Option(help="The folder of the benchmark's images.")] = None,
    lang: Annotated[str | None, typer.Option(help="The language of the benchmark's captions.")] = None,
) -> None:
    """Find the images of a benchmark that are among training images, by name and by content.

    The exit status is 3 when any is.
    """
    form = output.checked(training)
    result = find_leaks(get_benchmark(name), data, training, images, lang)
    write_result(result, output.output, form)
    if result.leaked:
        raise typer.Exit(3)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(leakage)

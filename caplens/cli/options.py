"""Options that several subcommands share."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli.output import Format

Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", help="A metric; may be given several times, or as a list with commas."),
]
References = Annotated[Path | None, typer.Option("--references", "-r", help="A file with the references, joined by id.")]
Lang = Annotated[str | None, typer.Option(help="The language of captions that name none (BCP-47: en, zh, sw, …).")]
Tokenizer = Annotated[str | None, typer.Option(help="The tokenizer for all captions. \\[default: by language]")]
DocumentFrequencies = Annotated[
    Path | None,
    typer.Option("--df", help="Take CIDEr's document frequencies from this file of references or of 'caplens df'."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of to the terminal.")]
OutputFormat = Annotated[Format | None, typer.Option("--format", "-f", help="\\[default: by the output's suffix, else a table]")]
Resamples = Annotated[int, typer.Option(min=0, help="Resamples for intervals and tests; 0 for none.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of everything random.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help="repetition, removal, masking, jumble, substitution, or all; may be given several times. \\[default: all]"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results, warnings and errors: no progress bar, no remarks.")]


OF_EXAMPLE = ("clipscore", "refclipscore", "cider", "bleu4")
"""What the example in the package is scored with."""


def listed(given: list[str] | None, default: tuple[str, ...]) -> list[str]:
    """`-m cider -m bleu4,rouge-l` -> three names."""
    return [name.strip() for part in given for name in part.split(",") if name.strip()] if given else list(default)


def in_place_of(
    command: Callable[..., Any], run: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """`run` under the name and with the help of `command`; its options are `parameters`, of which typer asks the signature."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run

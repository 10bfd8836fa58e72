"""`caplens perturb`: captions made worse on purpose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.output import say, warn
from caplens.data import Sample, SampleFile, write_samples
from caplens.data.files import ensure_apart, ensure_writable
from caplens.perturb import get_perturbations, perturbed

EXAMPLES = """
[bold]Examples[/bold]

caplens perturb captions.jsonl worse.jsonl --kind all

caplens perturb captions.jsonl worse.csv --kind jumble --kind masking --lang de --seed 1
"""


def perturb(
    captions: Annotated[Path, typer.Argument(help="Any file of captions; rows may have 'objects', a list of what matters.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix tells the format.")],
    kind: options.Kinds = None,
    lang: options.Lang = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> dict[str, Any]:
    """Make captions worse: repeat, remove, mask, jumble or swap their words, in any language.

    Each caption gives a row for each kind, with the original in 'original' and the kind in 'perturbation'. A caption that cannot
    be made worse in a way is counted, and has no row.
    """
    wanted = get_perturbations(options.listed(kind, ("all",)))
    ensure_writable(target)
    ensure_apart(target, captions)
    impossible = dict.fromkeys((perturbation.name for perturbation in wanted), 0)

    def rows() -> Iterator[Sample]:
        for sample in SampleFile(captions):
            for perturbation in wanted:
                worse = perturbed(sample, perturbation, seed, lang)
                if worse is None:
                    impossible[perturbation.name] += 1
                else:
                    yield worse

    with progress_bar(quiet):
        count = write_samples(rows(), target)
    say(f"{count:,} perturbed captions written to {target}")
    warn([f"{count:,} captions are too short for {name}." for name, count in impossible.items() if count])
    return {"written": str(target), "captions": count, "impossible": impossible}

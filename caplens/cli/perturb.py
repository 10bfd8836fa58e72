"""`caplens perturb`: captions made worse on purpose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli.command import command
from caplens.cli.options import AllowFormulas, Lang, PerturbationProtocol, Perturbations, Seed, listed
from caplens.cli.output import info, warn
from caplens.data import Sample, SampleFile, write_samples
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.errors import InputError
from caplens.perturbation import check_protocol, get_perturbations, perturbed

EXAMPLES = """
caplens perturb captions.jsonl worse.jsonl --perturbation all
caplens perturb captions.jsonl worse.csv --perturbation jumble --perturbation masking --lang de --seed 1
"""


def perturb(
    captions: Annotated[Path, typer.Argument(help="Any file of captions; rows may have 'objects', a list of what matters.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    perturbation: Perturbations = None,
    protocol: PerturbationProtocol = "paper",
    lang: Lang = None,
    seed: Seed = 0,
    allow_formulas: AllowFormulas = False,
) -> dict[str, Any]:
    """Make captions worse: repeat, remove, mask, jumble or swap their words, in any language.

    Each caption gives one row per perturbation, with the original in 'original' and the kind in 'perturbation'. A caption that a
    perturbation cannot be applied to, or leaves nothing of, is counted, and has no row.
    """
    kinds, rule = get_perturbations(listed(perturbation) or ("all",)), check_protocol(protocol)
    ensure_writable(target)
    ensure_apart(target, captions)
    skipped = dict.fromkeys((kind.name for kind in kinds), 0)

    def rows() -> Iterator[Sample]:
        for sample in SampleFile(captions):
            taken = next((name for name in ("original", "perturbation") if name in sample.meta), None)
            if taken is not None:
                raise InputError(f"{captions}: it has a column {taken!r}, which perturbed captions have too. Rename it.")
            for kind in kinds:
                worse = perturbed(sample, kind, seed, lang, rule)
                if worse is None:
                    skipped[kind.name] += 1
                else:
                    yield worse

    count = write_samples(rows(), target, allow_formulas=allow_formulas)
    info(f"{count:,} perturbed captions written to {target}")
    warn([f"{count:,} captions are too short for {name}." for name, count in skipped.items() if count])
    return {"written": str(target), "captions": count, "skipped": skipped, "impossible": skipped}


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(perturb)

"""`caplens list`: what there is to choose from."""

from enum import StrEnum
from typing import Annotated

import typer

from caplens.backbones import PRESETS
from caplens.backbones.registry import FAMILIES, families
from caplens.benchmarks.registry import list_benchmarks
from caplens.captioners import list_captioners
from caplens.cli.command import command
from caplens.cli.options import OutputOptions
from caplens.cli.output import Format, write_tables
from caplens.comparison import crossmodal3600
from caplens.data.languages import CROSSMODAL_3600, language_names
from caplens.metrics.registry import list_metrics
from caplens.results.table import Cell, Table
from caplens.terminal import visible
from caplens.text.tokenizer import default_tokenizer, list_tokenizers

EXAMPLES = """
caplens list metrics
caplens list models
caplens list languages -f csv
"""


class Kind(StrEnum):
    metrics = "metrics"
    models = "models"
    tokenizers = "tokenizers"
    benchmarks = "benchmarks"
    captioners = "captioners"
    languages = "languages"


def list_(output: OutputOptions, kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List the metrics, models, tokenizers, benchmarks, captioners or languages, those of other packages included."""
    form = output.checked()
    table = {
        Kind.metrics: _metrics,
        Kind.models: _models,
        Kind.tokenizers: _tokenizers,
        Kind.benchmarks: _benchmarks,
        Kind.captioners: _captioners,
        Kind.languages: _languages,
    }[kind]()
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    if kind is Kind.models and form is Format.table and output.output is None:
        _print_models(table)
        return
    write_tables([table], output.output, form, lambda: {kind.value: rows})


def _metrics() -> Table:
    rows: list[list[Cell]] = [[name, needs, summary] for name, (needs, summary) in list_metrics().items()]
    return Table(["metric", "needs", "description"], rows)


def _models() -> Table:
    rows: list[list[Cell]] = [
        [name, int(parameters), languages, int(tokens), licence, float(download), source]
        for name, parameters, languages, tokens, licence, download, source in PRESETS
    ]
    rows += [[f"{name}:…", *[None] * 5, "a family of another package"] for name in families() if name not in FAMILIES]
    notes = [
        "Millions of parameters and GB to download: about. 'table 1' is that of the multilingual CLIPScore paper.",
        "Any other model of these families works too: hf:ORG/NAME, openclip:ARCH/PRETRAINED, openclip:hf-hub:ORG/NAME,",
        "mclip:ORG/NAME, st:ORG/NAME, or the path of a folder in place of ORG/NAME.",
    ]
    return Table(["model", "M", "languages", "tokens", "licence", "GB", "source"], rows, notes=notes, digits=1)


def _print_models(table: Table) -> None:
    """Names are long and copied whole: each has a line of its own."""
    for name, parameters, languages, tokens, licence, download, source in table.rows:
        size = f"{parameters} M parameters, {download} GB; languages: {languages}; up to {tokens} tokens; {licence}; "
        typer.echo(visible(f"{name}\n    {'' if parameters is None else size}{source}"))
    for note in table.notes:
        typer.echo(note)


def _tokenizers() -> Table:
    rows: list[list[Cell]] = [[name, extra or "–", summary] for name, (extra, summary) in list_tokenizers().items()]
    return Table(["tokenizer", "extra", "description"], rows)


def _benchmarks() -> Table:
    rows: list[list[Cell]] = [
        [name, ", ".join(benchmark.protocols), benchmark.summary] for name, benchmark in list_benchmarks().items()
    ]
    rows.append([crossmodal3600.NAME, "", "references in 36 languages, for comparing captioners: 'caplens crossmodal'"])
    return Table(["benchmark", "protocols", "description"], rows)


def _captioners() -> Table:
    return Table(["captioner", "source"], [list(row) for row in list_captioners().items()])


def _languages() -> Table:
    names = language_names()
    ordered = sorted(names, key=lambda code: (code not in CROSSMODAL_3600, code))
    rows = [[code, names[code], default_tokenizer(code), "yes" if code in CROSSMODAL_3600 else ""] for code in ordered]
    return Table(["code", "language", "default tokenizer", "in Crossmodal-3600"], rows)


def register(app: typer.Typer) -> None:
    command(app, "list", EXAMPLES)(list_)

"""`caplens list`: what there is to choose from."""

from enum import StrEnum
from typing import Annotated

import typer

from caplens.backbones import PRESETS
from caplens.bench import BENCHMARKS, crossmodal3600
from caplens.cli import options
from caplens.cli.output import Format, choose_format, deliver
from caplens.data.languages import CROSSMODAL_3600, language_names
from caplens.metrics import METRICS
from caplens.report import Table
from caplens.report.tables import Cell
from caplens.text import TOKENIZERS, default_tokenizer

EXAMPLES = """
[bold]Examples[/bold]

caplens list metrics

caplens list models

caplens list languages -f csv
"""


class Kind(StrEnum):
    metrics = "metrics"
    models = "models"
    tokenizers = "tokenizers"
    benchmarks = "benchmarks"
    languages = "languages"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    output: options.Output = None,
    format: options.OutputFormat = None,
) -> None:
    """List the metrics, models, tokenizers, benchmarks or languages."""
    form = choose_format(output, format)
    table = {
        Kind.metrics: _metrics,
        Kind.models: _models,
        Kind.tokenizers: _tokenizers,
        Kind.benchmarks: _benchmarks,
        Kind.languages: _languages,
    }[kind]()
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    if kind is Kind.models and form is Format.table and output is None:
        _print_models(table)
        return
    deliver(output, form, lambda: {kind.value: rows}, [table])


def _metrics() -> Table:
    return Table(["metric", "needs", "description"], [[name, entry.needs, entry.summary] for name, entry in METRICS.items()])


def _models() -> Table:
    rows: list[list[Cell]] = [
        [name, int(parameters), languages, int(tokens), licence, float(download), source]
        for name, parameters, languages, tokens, licence, download, source in PRESETS
    ]
    notes = [
        "Millions of parameters and GB to download: about. 'table 1' is that of the multilingual CLIPScore paper.",
        "Any other model of these families works too: hf:ORG/NAME, openclip:ARCH/PRETRAINED, openclip:hf-hub:ORG/NAME,",
        "mclip:ORG/NAME, st:ORG/NAME, or the path of a folder in place of ORG/NAME.",
    ]
    return Table(["model", "M", "languages", "tokens", "licence", "GB", "source"], rows, notes=notes, digits=1)


def _print_models(table: Table) -> None:
    """Names are long, and to be copied whole: each has a line of its own."""
    for name, parameters, languages, tokens, licence, download, source in table.rows:
        typer.echo(name)
        typer.echo(
            f"    {parameters} M parameters, {download} GB; languages: {languages}; up to {tokens} tokens; {licence}; {source}"
        )
    for note in table.notes:
        typer.echo(note)


def _tokenizers() -> Table:
    rows = [[name, entry.extra or "–", entry.summary] for name, entry in TOKENIZERS.items()]
    return Table(["tokenizer", "extra", "description"], rows)


def _benchmarks() -> Table:
    rows = [[name, ", ".join(benchmark.protocols), benchmark.summary] for name, benchmark in BENCHMARKS.items()]
    rows.append([crossmodal3600.NAME, "", "references in 36 languages, for comparing captioners: 'caplens crossmodal'"])
    return Table(["benchmark", "protocols", "description"], rows)


def _languages() -> Table:
    names = language_names()
    ordered = sorted(names, key=lambda code: (code not in CROSSMODAL_3600, code))
    rows = [[code, names[code], default_tokenizer(code), "yes" if code in CROSSMODAL_3600 else ""] for code in ordered]
    return Table(["code", "language", "default tokenizer", "in Crossmodal-3600"], rows)

"""`caplens filter`: the captions of a file that are good enough."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.calibration.filtering import FilterReport
from caplens.cli.command import Outcome, command
from caplens.cli.options import (
    AllowFormulas,
    CalibrationOption,
    ColumnOptions,
    Lang,
    MetricOptions,
    ModelOptions,
    ReferencesOption,
    listed,
)
from caplens.cli.output import check_unused, info, names_folder, warn
from caplens.data.columns import parsed_columns
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.data.writing import format_of
from caplens.errors import InputError
from caplens.results.base import null_if_nan

EXAMPLES = """
caplens filter captions.jsonl good.jsonl --images photos --keep-top 30%
caplens filter pairs.parquet good.parquet --images photos --above 0.3
caplens filter pairs.parquet good.parquet --images photos --below-chance
caplens filter captions.jsonl good.csv -m cider --keep-top 50%
caplens filter 'parts/*.parquet' good/ --images photos --keep-top 30%
"""


def filter_(
    metrics: MetricOptions,
    models: ModelOptions,
    columns: ColumnOptions,
    captions: Annotated[Path, typer.Argument(help="Captions in any format.")],
    output: Annotated[Path, typer.Argument(help="The file to write: .jsonl, .csv, .tsv, .xlsx or .parquet; or a folder.")],
    references: ReferencesOption = None,
    lang: Lang = None,
    keep_top: Annotated[str | None, typer.Option(help="Keep the best captions, so many of those that have a score: 30%.")] = None,
    above: Annotated[float | None, typer.Option(help="Keep captions that score higher than this.")] = None,
    below_chance: Annotated[
        bool,
        typer.Option("--below-chance", help="Leave out captions that score no higher than 95% of captions of other images do."),
    ] = False,
    calibration: CalibrationOption = None,
    allow_formulas: AllowFormulas = False,
) -> Outcome:
    """Write the captions that are good enough into another file, each with its score: for cleaning training sets.

    Captions are scored by CLIPScore, or by the metric that is named; those without a score are left out and counted. From Parquet
    to Parquet, rows are copied with all their columns, and of embedded images none is lost. The exit status is 3 where
    captions could not be scored. With a folder or URL as output, captions are scored and kept partition by partition, as by
    'caplens score'; those that are kept are in OUTPUT/kept.
    """
    names = listed(metrics.metric) or ["clipscore"]
    if names_folder(output, None):
        report = _filter_partitions(
            metrics, models, columns, captions, output, names, lang, _share(keep_top), above,
            {"--references": references, "--below-chance": below_chance, "--calibration": calibration},
        )  # fmt: skip
    else:
        format_of(output)
        ensure_apart(output, captions, references)
        ensure_writable(output)
        report = api.filter_captions(
            columns.samples(captions),
            output,
            names,
            keep_top=_share(keep_top),
            above=above,
            above_chance=below_chance,
            references=references,
            images=models.images,
            calibration=calibration,
            allow_formulas=allow_formulas,
            options=models.scoring(metrics, lang, names),
        )
    warn(report.warnings)
    lowest = f", the worst with {report.metric} {report.threshold:.3f}" if report.kept else ""
    info(f"{report.kept:,} of {report.rows:,} captions kept{lowest}; written to {output}")
    content = {
        "output": str(output), "rows": report.rows, "kept": report.kept, "unscored": report.unscored,
        "threshold": null_if_nan(report.threshold), "metric": report.metric, "signature": report.signature,
    }  # fmt: skip
    return Outcome(content, 3 if report.unscored else 0)


def _filter_partitions(
    metrics: MetricOptions, models: ModelOptions, columns: ColumnOptions, captions: Path, output: Path, names: list[str],
    lang: str | None, keep_top: float | None, above: float | None, unusable: Mapping[str, object],
) -> FilterReport:  # fmt: skip
    check_unused(unusable)
    if len(names) != 1:
        raise InputError(f"a filter decides by one metric, not by {len(names)}. Name one.")
    return api.filter_partitions(
        captions, str(output), names[0], keep_top=keep_top, above=above, images=models.images,
        columns=parsed_columns(columns.columns or []), options=models.scoring(metrics, lang, names),
    )  # fmt: skip


def _share(text: str | None) -> float | None:
    """`30%` or `0.3` as a share."""
    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--keep-top takes a share such as 30% or 0.3, not {text!r}.") from None


def register(app: typer.Typer) -> None:
    command(app, "filter", examples=EXAMPLES)(filter_)

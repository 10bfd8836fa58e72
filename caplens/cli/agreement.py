"""`caplens agreement`: how well metrics agree with one's own raters."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.options import (
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ReferencesOption,
    ScoresOption,
    Seed,
    SomeResamples,
    listed,
    with_external,
)
from caplens.cli.output import write_result
from caplens.stats import RESAMPLES

EXAMPLES = """
caplens agreement rated.jsonl -m cider,bleu4
caplens agreement rated.jsonl --images photos -m clipscore,refclipscore --protocol expanded
caplens agreement rated.jsonl --images photos --coefficient spearman -o agreement.json
A line of rated.jsonl: {"id": "1", "caption": "A dog.", "references": ["A dog runs."], "ratings": [{"value": 4, "rater": "a"}]}
"""


def agreement(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    captions: Annotated[Path, typer.Argument(help="Captions with 'ratings': numbers, or records with value, rater, criterion.")],
    references: ReferencesOption = None,
    lang: Lang = None,
    protocol: Annotated[
        str, typer.Option(help="How several ratings of a caption are aggregated: mean, median, or expanded.")
    ] = "mean",
    coefficient: Annotated[
        list[str] | None,
        typer.Option(help="tau-c, tau-b, spearman or pearson; may be given several times, the main one first. \\[default: all]"),
    ] = None,
    scores: ScoresOption = None,
    criterion: Annotated[str | None, typer.Option(help="The criterion whose ratings count, where there are several.")] = None,
    resamples: SomeResamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """Measure how well metrics agree with your own raters.

    Correlations come with confidence intervals by bootstrap over images, and tests between metrics. Where ratings have several
    raters, captions per image or systems: Krippendorff's alpha and the human ceiling (each rater against the mean of the others),
    tie-calibrated pairwise accuracy, and correlations of the systems' means. Without --metric: as for 'caplens bench'.
    """
    form = output.checked(captions, references)
    names = listed(metrics.metric)
    models.announce(names)
    result = api.agreement(
        captions,
        with_external(names, scores),
        references=references,
        images=models.images,
        models=models.models,
        protocol=protocol,
        coefficients=listed(coefficient),
        criterion=criterion,
        resamples=resamples,
        seed=seed,
        **models.keywords(metrics, lang),
    )
    write_result(result, output.output, form, {"captions": captions, "references": references, "images": models.images})
    if result.failed:
        raise typer.Exit(3)


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(agreement)

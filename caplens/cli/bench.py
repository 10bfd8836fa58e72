"""`caplens bench`: how well metrics agree with people."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli import options
from caplens.cli.bar import progress_bar
from caplens.cli.models import Models, with_models
from caplens.cli.output import choose_format, deliver, warn
from caplens.errors import InputError
from caplens.report.views import bench_table, contrasts_table

_DEFAULT = ("bleu1", "bleu4", "rouge-l", "cider", "length")

EXAMPLES = """
[bold]Examples[/bold]

caplens bench flickr8k-expert --data flickr8k

caplens bench flickr8k-expert --data flickr8k --images flickr8k/images

caplens bench flickr8k-expert --data flickr8k --protocol mean -m cider -o expert.json
"""


@with_models
def bench(
    name: Annotated[str, typer.Argument(help="A benchmark; 'caplens list benchmarks' shows them.")],
    data: Annotated[Path, typer.Option(help="The folder with the data set's own files.")],
    metric: options.Metrics = None,
    protocol: Annotated[str | None, typer.Option(help="How ratings are aggregated. \\[default: as papers do]")] = None,
    lang: Annotated[str, typer.Option(help="The language of the captions, where the data set has translations.")] = "en",
    tokenizer: options.Tokenizer = None,
    output: options.Output = None,
    format: options.OutputFormat = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    *,
    models: Models,
) -> None:
    """Measure how well metrics agree with people, beside the published values.

    Without --metric: bleu1, bleu4, rouge-l, cider and length, and with --images or a --model clipscore and refclipscore.
    Coefficients are times 100, with confidence intervals by bootstrap over images.
    """
    form = choose_format(output, format)
    if not resamples:
        raise InputError("a benchmark needs resamples for its intervals; give at least 1 with --resamples.")
    names = options.metric_names(metric, (*_DEFAULT, "clipscore", "refclipscore") if models.chosen else _DEFAULT)
    with progress_bar(quiet):
        results = api.bench(
            name,
            data,
            names,
            images=models.images,
            model=models.open(names),
            prompt=models.prompt,
            protocol=protocol,
            tokenizer=tokenizer,
            resamples=resamples,
            seed=seed,
            lang=lang,
        )
    tables = [bench_table(results), *([contrasts_table(results)] if results.contrasts else [])]
    deliver(output, form, results.to_dict, tables)
    warn(results.warnings)
    if results.failed:
        warn([f"{results.failed} captions have no score from every metric and were left out."])
        raise typer.Exit(3)

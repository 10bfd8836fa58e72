"""Keeping good captions, and noticing when scores change."""

from os import PathLike
from typing import Unpack

import numpy as np

from caplens.api.metrics import Metrics, metrics_of
from caplens.calibration import CalibrationChoice, add_levels
from caplens.calibration.filtering import FilterReport, FilterRule, is_lower_better, kept_rows
from caplens.comparison.drift import compare_runs
from caplens.data.inputs import ImagesInput, ReferencesInput, read_captions
from caplens.data.reading import SampleFile
from caplens.data.replacing import ensure_apart
from caplens.data.selecting import write_selected
from caplens.embed.keys import file_version
from caplens.errors import InputError
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.scoring import missing_score_warnings, run_metrics
from caplens.results.drift import DriftResult
from caplens.results.loading import load_results
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES


def filter_captions(
    captions: str | PathLike[str] | SampleFile,
    output: str | PathLike[str],
    metric: Metrics = "clipscore",
    *,
    keep_top: float | None = None,
    above: float | None = None,
    above_chance: bool = False,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    calibration: CalibrationChoice = None,
    allow_formulas: bool = False,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> FilterReport:
    """Write the captions of a file that are good enough into another, in their order, each with its score.

    Parameters
    ----------
    captions
        A file of captions, as `score` takes it.
    output
        The file to write: `.jsonl`, `.csv`, `.tsv`, `.xlsx` or `.parquet`. From Parquet to Parquet, rows keep all their columns.
    metric
        The metric that decides.
    keep_top
        The share to keep, the best ones: 0.3 for 30%.
    above
        Keep captions that score higher than this.
    above_chance
        Keep captions that score higher than 95% of captions of other images of their language do.
    references, images, options, **keywords
        As for `score`.
    calibration
        For `above_chance`: what `calibrate` returned, or its file. caplens-mini has one of its own.
    allow_formulas
        Whether text that a spreadsheet would run as a formula is written as it is, without an apostrophe before it.

    Returns
    -------
    FilterReport
        How many captions were kept, and the score of the worst of them. Captions without a score are left out and counted.

    Raises
    ------
    InputError
        If nothing says what to keep, no caption can be scored, or the output cannot be written.

    Examples
    --------
    >>> report = caplens.filter_captions("pairs.parquet", "good.parquet", images="photos", keep_top=0.3)  # doctest: +SKIP
    >>> report.kept, report.threshold  # doctest: +SKIP
    """
    rule = FilterRule(keep_top, above, above_chance)
    options = ScoringOptions.of(options, **keywords)
    built = metrics_of("score", metric, images, options)
    if len(built) != 1:
        raise InputError(f"a filter decides by one metric, not by {len(built)}. Name one.")
    samples = captions if isinstance(captions, SampleFile) else SampleFile(captions, mark_repeats=True)
    ensure_apart(output, samples.path)
    version = file_version(str(samples.path))
    result = run_metrics(read_captions(samples, references, images, options.lang), built)
    if file_version(str(samples.path)) != version:
        raise InputError(f"{samples.path}: the file changed while it was scored. Run the command again.")
    name = built[0].name
    if above_chance:
        add_levels(result, calibration, options.lang)
    kept = kept_rows(result, name, rule)
    scores = result[name]
    count = write_selected(samples, result.ids, kept, scores.values, name, output, allow_formulas=allow_formulas)
    worst = np.max if is_lower_better(name) else np.min
    threshold = float(worst(scores.values[kept])) if count else float("nan")
    warnings = [*result.warnings, *missing_score_warnings(result, options.lang)]
    if not count:
        warnings.append("no caption was kept.")
    return FilterReport(len(kept), count, int(np.isnan(scores.values).sum()), threshold, name, scores.signature, warnings)


def drift(
    old: ScoreResult | str | PathLike[str],
    new: ScoreResult | str | PathLike[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> DriftResult:
    """How the scores of a run differ from those of an earlier one that has other captions.

    Parameters
    ----------
    old, new
        What `score` returned, or JSON files of it.
    resamples, seed
        Of the bootstrap over images that gives intervals; 0 resamples for none.

    Returns
    -------
    DriftResult
        For each metric and language the means, their difference, and tests for another level and another distribution.

    Raises
    ------
    InputError
        If a file holds no scores, or the runs have no metric in common.

    Examples
    --------
    >>> texts = [f"a dog runs {word}" for word in ("here", "there", "home", "fast", "off", "on")]
    >>> old = caplens.score(texts, ["length"], resamples=0)
    >>> new = caplens.score([f"{text} and barks" for text in texts], ["length"], resamples=0)
    >>> caplens.drift(old, new)["length", "all"].verdict
    'higher'
    """
    results, names = [], []
    for given, default in ((old, "old"), (new, "new")):
        result = given if isinstance(given, ScoreResult) else load_results(given)
        if not isinstance(result, ScoreResult):
            raise InputError(f"{given}: this is a result of 'caplens {result.kind}', not of 'caplens score'.")
        results.append(result)
        names.append(default if isinstance(given, ScoreResult) else str(given))
    return compare_runs(results[0], results[1], names[0], names[1], resamples, seed)

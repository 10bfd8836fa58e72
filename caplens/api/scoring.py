"""Scoring captions, as they are and made worse."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from caplens.api.metrics import Metrics, metrics_of
from caplens.arrays import Ints
from caplens.calibration import CalibrationChoice, add_levels
from caplens.comparison.language_pairs import compare_language_pairs
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, read_captions
from caplens.data.languages import base_language
from caplens.metrics.cider import pools_languages
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.scoring import KeepColumns, missing_score_warnings, run_metrics
from caplens.perturbation import check_protocol, get_perturbations, measure_robustness
from caplens.results.robustness import RobustnessResult
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES, bootstrap_pooled, interval


def score(
    samples: Captions,
    metrics: Metrics | None = None,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    strict: bool = False,
    keep_columns: KeepColumns = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    calibration: CalibrationChoice = None,
    pool_languages: bool = False,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> ScoreResult:
    """Score captions.

    Parameters
    ----------
    samples
        The captions: a file, a list of texts, id -> text, samples, rows as in a file, or a pandas or polars data frame.
    metrics
        Names, `Metric` objects or functions. By default CLIPScore where images or a model are given, else what the COCO
        evaluation computes.
    references
        A file, id -> texts, or, for captions in a list, the texts of each.
    images
        The folder of the images, id -> image, or, for captions in a list, the image of each.
    strict
        Whether the first caption that cannot be scored is an error.
    keep_columns
        Columns of the input that the result carries: True for all, or their names.
    resamples, seed
        Of the bootstrap over images that gives confidence intervals; 0 resamples for none.
    calibration
        What `calibrate` returned, or a file of it: says where scores stand between chance and good captions. caplens-mini has one
        of its own.
    pool_languages
        Whether CIDEr has one corpus score for captions in several languages, whose tokens are not comparable; without it, each
        language has one.
    options, **keywords
        How captions are scored: `model`, `tokenizer`, `lang`, `df`, `prompt`, … as a `ScoringOptions`, or one by one.

    Returns
    -------
    ScoreResult
        `result["cider"]` has the corpus score, the score of each caption and the signature of a metric.

    Raises
    ------
    InputError
        If something that was passed cannot be used, or no metric can score any caption.

    Examples
    --------
    >>> result = caplens.score(["a dog runs"], ["bleu1"], references=[["a dog runs", "the dog is running"]])
    >>> round(result["bleu1"].corpus, 3)
    1.0
    """
    options = ScoringOptions.of(options, **keywords)
    built = metrics_of("score", metrics, images, options)
    joined = read_captions(samples, references, images, options.lang)
    result = run_metrics(joined, built, strict=strict, keep_columns=keep_columns)
    result.warnings += missing_score_warnings(result, options.lang)
    systems = {system for system in result.systems if system is not None}
    if len(systems) > 1:
        result.warnings.append(f"the captions of {len(systems)} systems were scored together; 'compare' tells them apart.")
    if not pool_languages:
        _unpool_languages(result)
    if resamples:
        _add_intervals(result, options.lang, resamples, seed)
    add_levels(result, calibration, options.lang)
    if resamples:
        result.language_pairs = compare_language_pairs(result, options.lang, resamples, seed)
    return result


def _unpool_languages(result: ScoreResult) -> None:
    """Take away the corpus scores of CIDEr over several languages."""
    for name, scores in result.metrics.items():
        if not pools_languages(name) and len(scores.by_language) > 1:
            result.metrics[name] = replace(scores, corpus=float("nan"))
            result.warnings.append(
                f"{name}: no score over all {len(scores.by_language)} languages, whose tokens differ; see each language."
                " (pool_languages, --pool-languages, gives one all the same.)"
            )


def _add_intervals(result: ScoreResult, lang: str | None, resamples: int, seed: int) -> None:
    """Confidence intervals of corpus scores, of all captions and of each language."""
    langs = np.array([base_language(tag or lang or "en") for tag in result.langs])
    for name, scores in result.metrics.items():
        scored = np.flatnonzero(~np.isnan(scores.values))
        if not scores.corpus_is_pooled or not len(scored):
            continue
        pooled = not np.isnan(scores.corpus)
        result.intervals[name] = _interval(result, name, scored, resamples, seed) if pooled else (np.nan, np.nan)
        if len(scores.by_language) > 1:
            result.language_intervals[name] = {
                language: _interval(result, name, scored[langs[scored] == language], resamples, seed)
                for language in scores.by_language
            }


def _interval(result: ScoreResult, metric: str, rows: Ints, resamples: int, seed: int) -> tuple[float, float]:
    """Of the corpus score of some captions, by bootstrap over images."""
    scores = result[metric]
    groups = [result.groups[row] for row in rows]
    return interval(bootstrap_pooled(scores.statistics[rows], scores.pool, groups, resamples, seed))


def robustness(
    samples: Captions,
    metrics: Metrics | None = None,
    perturbations: Sequence[str] = ("all",),
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    protocol: str = "paper",
    options: ScoringOptions | None = None,
    kinds: Sequence[str] | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> RobustnessResult:
    """How much metrics notice that captions were made worse.

    Parameters
    ----------
    samples
        Good captions, as `score` takes them.
    perturbations
        repetition, removal, masking, jumble, substitution, or all; `kinds` is their old name.
    protocol
        `paper`, as PR-MCS, or `gentle`, by which every caption changes.
    metrics, references, images, resamples, seed, options, **keywords
        As for `score`.

    Returns
    -------
    RobustnessResult
        The effect of each perturbation on each metric, by language.

    Raises
    ------
    InputError
        If no caption can be perturbed.

    Examples
    --------
    >>> result = caplens.robustness(["a dog runs fast"], ["length"], ["repetition"], resamples=10)
    >>> result.effects[0].perturbation
    'repetition'
    """
    if kinds is not None:
        warnings.warn("'kinds' is the old name of 'perturbations'; use that.", FutureWarning, stacklevel=2)
        perturbations = kinds
    chosen = get_perturbations(perturbations)
    options = ScoringOptions.of(options, **keywords)
    built = metrics_of("robustness", metrics, images, options)
    joined = read_captions(samples, references, images, options.lang)
    return measure_robustness(joined, built, chosen, options.lang, max(1, resamples), seed, check_protocol(protocol))

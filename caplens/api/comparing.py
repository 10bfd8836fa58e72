"""Comparing captioning systems."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from caplens.api.metrics import Metrics, metrics_of
from caplens.comparison import crossmodal3600
from caplens.comparison.human_baseline import HUMANS, human_captions
from caplens.comparison.systems import align_systems, compare_systems, pairs_of_systems, score_systems
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, open_references, read_captions
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.results.comparison import Comparison, LanguageComparison
from caplens.stats import CORRECTION, RESAMPLES, get_correction


def compare(
    systems: Mapping[str, Captions],
    metrics: Metrics | None = None,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = CORRECTION,
    human_baseline: bool = False,
    baseline: str | None = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> Comparison:
    """Score several systems on the images that all of them have captions about, and test their differences.

    Parameters
    ----------
    systems
        Name -> captions, each as `score` takes them.
    metrics, references, images, resamples, seed, options, **keywords
        As for `score`. The default metrics are BLEU-4, ROUGE-L and CIDEr, or CLIPScore where images or a model are given.
    correction
        For comparing several systems by one metric: holm, bonferroni or bh.
    baseline
        The system that each other one is compared with, and subtracted from them; by default every two are compared.
    human_baseline
        Whether people are a system too, as in table 7 of PAC-S: of each image one reference, drawn by `seed`, is the caption, and
        the others are its references.

    Returns
    -------
    Comparison
        Scores with intervals, and the differences of systems with p-values: of paired permutation tests over images, at least
        10,000 permutations or all that there are.

    Raises
    ------
    InputError
        If there are fewer than two systems, or they have no id in common.

    Examples
    --------
    >>> references = {"1": ["a dog runs"], "2": ["a cat sleeps"], "3": ["two birds"]}
    >>> good = {"1": "a dog runs", "2": "a cat sleeps", "3": "two birds"}
    >>> bad = {"1": "a car", "2": "a car", "3": "a car"}
    >>> comparison = caplens.compare({"good": good, "bad": bad}, ["bleu1"], references=references)
    >>> comparison.scores["bleu1"]["good"].value > comparison.scores["bleu1"]["bad"].value
    True
    """
    get_correction(correction)
    options = ScoringOptions.of(options, **keywords)
    built = metrics_of("compare", metrics, images, options)
    if not isinstance(systems, Mapping):
        raise InputError(f"systems are a mapping of name -> captions, not {type(systems).__name__}.")
    if len(systems) + human_baseline < 2:
        raise InputError("a comparison needs at least two systems.")
    parallel = isinstance(references, Sequence) and not isinstance(references, str)
    opened = references if references is None or parallel else open_references(references)
    samples = {name: list(read_captions(captions, opened, images, options.lang)) for name, captions in systems.items()}
    if human_baseline:
        samples = {**samples, HUMANS: human_captions(next(iter(samples.values())), seed)}
    if baseline is not None:
        pairs_of_systems(list(samples), baseline)
    return _compared(samples, built, resamples, seed, correction, baseline)


def _compared(
    systems: Mapping[str, Sequence[Sample]],
    metrics: list[Metric],
    resamples: int,
    seed: int,
    correction: str,
    baseline: str | None = None,
) -> Comparison:
    """Systems on what all of them have captions about; a lone system on all that it has."""
    alignment = align_systems(systems)
    results, left_out = score_systems(alignment.samples, metrics)
    comparison = compare_systems(results, max(1, resamples), seed, correction, left_out, baseline)
    comparison.failed += sum(alignment.repeated.values())
    comparison.warnings += alignment.warnings()
    return comparison


def crossmodal(
    systems: Mapping[str, Captions],
    data: str | PathLike[str],
    metrics: Metrics | None = None,
    *,
    images: ImagesInput = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = CORRECTION,
    regions: Sequence[str] | None = None,
    subset: int | None = None,
    baseline: str | None = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> LanguageComparison:
    """Captions of systems against the references of Crossmodal-3600, language by language.

    Parameters
    ----------
    systems
        Name -> captions, which have the image's key as `id`, and a `lang`.
    data
        The folder with captions.jsonl of Crossmodal-3600.
    metrics, images, resamples, seed, correction, baseline, options, **keywords
        As for `compare`; by default cider-original, which is the paper's, cider (CIDEr-D), and clipscore where images or a model
        are given. Without a `tokenizer` the release's own tokens are used where it has them, else those of each language.
    regions
        Languages of regions: only images that were chosen for one of them count.
    subset
        How many images count, drawn at random by `seed`; 600 are what the paper calls XM600.

    Returns
    -------
    LanguageComparison
        Language -> comparison, and scores by region. Document frequencies are counted over the references of captioned images.

    Raises
    ------
    InputError
        If a caption names no language, or none belongs to the data set.

    Examples
    --------
    >>> result = caplens.crossmodal({"base": "base.jsonl", "large": "large.jsonl"}, "crossmodal3600")  # doctest: +SKIP
    >>> result.comparisons["sw"].scores["cider"]["large"].value  # doctest: +SKIP
    """
    options = ScoringOptions.of(options, **keywords)
    described = crossmodal3600.read_images(Path(data))
    chosen = crossmodal3600.select_images(described, regions, subset, seed)
    if options.tokenizer is None and options.df is None:
        options = replace(options, tokenizer=crossmodal3600.released_tokenizers(described))
    built = metrics_of("crossmodal", metrics, images, options)
    references, keys = crossmodal3600.references(described, str(data)), {image.key for image in chosen}
    by_language: dict[str, dict[str, list[Sample]]] = {}
    for name, captions in systems.items():
        for sample in read_captions(captions, references, images):
            if sample.lang is None:
                raise InputError(f"{name}: the caption {sample.id!r} names no language; give each its 'lang'.")
            if len(chosen) < len(described) and sample.id not in keys:
                continue
            by_language.setdefault(base_language(sample.lang), {}).setdefault(name, []).append(sample)
    comparisons = {
        lang: _compared(of_language, built, resamples, seed, correction, baseline)
        for lang, of_language in sorted(by_language.items())
    }
    if not comparisons:
        raise InputError("no system has captions about the images of these regions, or of this subset.")
    for comparison in comparisons.values():
        if comparison.samples < len(chosen):
            comparison.warnings.append(
                f"{comparison.samples:,} of {len(chosen):,} images have captions; frequencies are counted over them."
            )
    by_image = crossmodal3600.regions_by_image(chosen)
    by_region = {
        lang: scores for lang, comparison in comparisons.items() if (scores := crossmodal3600.region_scores(comparison, by_image))
    }
    return LanguageComparison(comparisons, crossmodal3600.NAME, by_region)

"""Which captions are bad, and why: the rules, the file as a whole, and the images, put together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from caplens.calibration.applying import CalibrationChoice, add_levels, built_in_calibration, open_calibration
from caplens.calibration.image_faults import (
    ImageFindings,
    find_better_images,
    find_unsupported_words,
    image_faults,
    name_in,
    reference_faults,
)
from caplens.calibration.levels import FEWEST, measure_levels
from caplens.calibration.set_faults import duplicate_faults
from caplens.calibration.text_faults import NO_CAPTION, TextContext, text_faults
from caplens.data.formats.json_document import is_json
from caplens.data.languages import CROSSMODAL_3600, base_language, language_names
from caplens.data.media import ImageSource, MissingImage
from caplens.data.sample import Sample
from caplens.errors import InputError, MissingExtraError, option
from caplens.metrics.embedding import CosineCollector, EmbeddingMetric
from caplens.metrics.scoring import run_metrics
from caplens.progress import track
from caplens.results.calibration import Calibration
from caplens.results.check import CheckedCaption, CheckResult, Fault, Verdict
from caplens.results.scores import ScoreResult
from caplens.stats.percentiles import Distribution
from caplens.text.identification import LanguageModel, default_model, identify_language

_UNUSABLE = "unusable row"
_MOST_NEAR = 200_000
"""Captions among which those that differ in a word are looked for."""
_ENOUGH_LENGTHS = 200
_COMMON = 0.02
"""Share of captions from which on a language counts as one of the file."""


def check_captions(
    samples: Sequence[Sample],
    metric: EmbeddingMetric,
    lang: str | None = None,
    calibration: CalibrationChoice = None,
    language_model: LanguageModel | None = None,
    seed: int = 0,
    folder: Path | None = None,
) -> CheckResult:
    """Captions, worst first, with the reasons.

    Parameters
    ----------
    samples
        The captions; those without an image are judged by their text alone.
    metric
        What compares captions with images.
    lang
        The language of captions that name none; without it, theirs is identified.
    calibration
        The levels of the metric. Without one that fits, they are measured on these captions.
    language_model
        What identifies languages; by default py3langid, where it is installed.
    seed
        Of what is drawn at random to measure levels.
    folder
        The folder that the names of images are relative to.
    """
    if not samples:
        raise InputError("there are no captions to check.")
    warnings: list[str] = []
    model = language_model or _installed_model(warnings)
    langs = _languages(samples, lang, model, warnings)
    samples = [replace(sample, lang=code) for sample, code in zip(samples, langs, strict=True)]
    opened = None if calibration is None else open_calibration(calibration)
    faults = _faults_of_texts(samples, langs, opened or built_in_calibration(), model)
    findings, result = _compared_with_images(samples, langs, metric, opened, seed, folder, warnings)
    for by_row in (*_duplicates(samples, langs, warnings), _references(samples, langs, metric, seed)):
        for row, fault in by_row.items():
            faults[row].append(fault)
    for row, of_images in findings.faults.items():
        # What is no caption at all need not be compared with an image.
        if not any(fault.kind in NO_CAPTION for fault in faults[row]):
            faults[row] += of_images
    captions = _checked_captions(samples, faults, findings, None if result is None else (result, metric.name), folder, warnings)
    signature, calibrated = ("", "") if result is None else (result[metric.name].signature, result.calibration)
    return CheckResult(
        sorted(captions, key=lambda caption: caption.badness), signature, calibrated, list(dict.fromkeys(warnings))
    )


def _checked_captions(
    samples: Sequence[Sample],
    faults: Sequence[Sequence[Fault]],
    findings: ImageFindings,
    scored: tuple[ScoreResult, str] | None,
    folder: Path | None,
    warnings: list[str],
) -> Iterator[CheckedCaption]:
    scores = np.full(len(samples), np.nan)
    chance, good = scores, scores
    doubts: Mapping[int, str] = {}
    columns = _columns_of_table(samples, warnings)
    if scored is not None:
        result, metric = scored
        doubts = result.coverage_warnings
        scores = result[metric].values
        if metric in result.levels:
            chance, good = result.levels[metric].chance, result.levels[metric].good
    for row, sample in enumerate(samples):
        path = str(sample.image) if isinstance(sample.image, str | PathLike) and str(sample.image) else None
        yield CheckedCaption(
            sample.id,
            sample.caption or "",
            None if path is None else name_in(folder, path),
            sample.lang,
            sample.system,
            tuple(sorted(faults[row], key=lambda fault: fault.verdict is not Verdict.fix)),
            float(scores[row]),
            float(chance[row]),
            float(good[row]),
            findings.better_images.get(row),
            findings.words.get(row, ()),
            {name: value for name, value in sample.meta.items() if name in columns},
            doubts.get(row),
            path,
            row,
        )


def _columns_of_table(samples: Sequence[Sample], warnings: list[str]) -> set[str]:
    """The other columns of the file but for those with bytes, which no table for people can hold."""
    names = dict.fromkeys(name for sample in samples for name in sample.meta)
    binary = {name for sample in samples for name, value in sample.meta.items() if not is_json(value)}
    if binary:
        warnings.append(f"columns that are no text or numbers are left out of tables: {', '.join(sorted(binary))}.")
    return set(names) - binary


def _installed_model(warnings: list[str]) -> LanguageModel | None:
    try:
        return default_model()
    except MissingExtraError as error:
        warnings.append(f"languages are not checked, only writing systems. {error}")
        return None


def _languages(samples: Sequence[Sample], lang: str | None, model: LanguageModel | None, warnings: list[str]) -> list[str]:
    """The language of each caption: as it says, else the one given, else as its text is identified among those of the file."""
    counts = Counter(sample.caption or "" for sample in samples if sample.lang is None)
    unnamed = dict.fromkeys(counts, "en")
    if unnamed and lang is None and model is not None:
        common = _common_languages(counts, model)
        unnamed = {text: identify_language(text, common, model).lang or common[0] for text in unnamed}
        names = ", ".join(language_names()[code] for code in common)
        warnings.append(
            f"{counts.total():,} captions name no language; theirs was identified ({names}). Give it in a column 'lang'."
        )
    return [base_language(sample.lang or lang or unnamed[sample.caption or ""]) for sample in samples]


def _common_languages(texts: Counter[str], model: LanguageModel) -> list[str]:
    """The languages of a good share of the texts, each of which is counted as often as it occurs."""
    counts: Counter[str] = Counter()
    for text, count in texts.items():
        identified = identify_language(text, None, model).lang
        if identified is not None:
            counts[identified] += count
    return [code for code, count in counts.most_common() if count >= _COMMON * texts.total()] or ["en"]


def _faults_of_texts(
    samples: Sequence[Sample], langs: Sequence[str], calibration: Calibration, model: LanguageModel | None
) -> list[list[Fault]]:
    lengths = {**_lengths_of_file(samples, langs), **calibration.lengths}
    candidates = tuple(dict.fromkeys([*CROSSMODAL_3600, *langs]))
    faults = []
    for sample, code in track(zip(samples, langs, strict=True), "reading captions", len(samples)):
        if sample.invalid:
            faults.append([Fault(_UNUSABLE, Verdict.fix, sample.invalid)])
            continue
        name = str(sample.image) if isinstance(sample.image, str | PathLike) else None
        faults.append(text_faults(sample.caption or "", TextContext(code, name, lengths.get(code), candidates, model)))
    return faults


def _lengths_of_file(samples: Sequence[Sample], langs: Sequence[str]) -> dict[str, Distribution]:
    """Language -> the lengths of the captions of the file, where there are enough of them to say what is usual."""
    lengths: dict[str, list[float]] = {}
    for sample, code in zip(samples, langs, strict=True):
        lengths.setdefault(code, []).append(float(len((sample.caption or "").strip())))
    return {code: Distribution.of(np.array(values)) for code, values in lengths.items() if len(values) >= _ENOUGH_LENGTHS}


def _compared_with_images(
    samples: Sequence[Sample],
    langs: Sequence[str],
    metric: EmbeddingMetric,
    calibration: Calibration | None,
    seed: int,
    folder: Path | None,
    warnings: list[str],
) -> tuple[ImageFindings, ScoreResult | None]:
    if all(sample.image is None for sample in samples):
        warnings.append("there are no images, so captions are judged by their text alone.")
        return ImageFindings(), None
    if folder is None and not any(_exists(sample.image) for sample in samples):
        warnings.append(
            "none of the images is in the current folder, so captions are judged by their text alone. Name the folder of the"
            f" images with {option('images')}."
        )
        return ImageFindings(), None
    result = run_metrics(samples, [metric], require_scores=_is_folder_wrong(samples))
    warnings += [warning for warning in result.warnings if "do not trust" in warning]
    add_levels(result, calibration)
    levels = result.levels.get(metric.name)
    values = result[metric.name].values
    without_level = ~np.isnan(values) if levels is None else ~np.isnan(values) & np.isnan(levels.chance)
    unknown = {langs[row] for row in np.flatnonzero(without_level).tolist()}
    scored = [s for s, code, value in zip(samples, langs, values, strict=True) if code in unknown and value == value]
    if scored:
        _add_own_levels(result, scored, metric, seed, warnings)
    findings = image_faults(samples, langs, result, metric.name)
    (collector,) = metric.collectors()
    assert isinstance(collector, CosineCollector)
    find_better_images(findings, samples, collector, folder)
    find_unsupported_words(findings, samples, collector)
    return findings, result


def _is_folder_wrong(samples: Sequence[Sample]) -> bool:
    """Whether another folder was meant: there are captions, and not one of their images."""
    return any(sample.caption for sample in samples) and not any(_exists(sample.image) for sample in samples)


def _exists(image: ImageSource | None) -> bool:
    return Path(image).exists() if isinstance(image, str | PathLike) else not isinstance(image, MissingImage | None)


def _add_own_levels(
    result: ScoreResult, samples: Sequence[Sample], metric: EmbeddingMetric, seed: int, warnings: list[str]
) -> None:
    """Levels of languages that the calibration lacks, measured on the captions themselves."""
    langs = sorted({str(sample.lang) for sample in samples})
    try:
        own = measure_levels(samples, [metric], seed=seed, about="these captions themselves")
    except InputError:
        warnings.append(
            f"there are no levels for {', '.join(langs)}, and captions of fewer than {FEWEST} images to measure them on: their"
            " images are not judged. Pass a file of 'caplens calibrate'."
        )
        return
    before, about = result.levels.get(metric.name), result.calibration
    add_levels(result, own)
    result.calibration = f"{about}; {own.about}" if about else own.about
    warnings.append(
        f"the levels of {', '.join(own.metrics[metric.name].languages)} were measured on these captions themselves, most of which"
        " are taken to be good. Better pass a file of 'caplens calibrate'."
    )
    if before is not None:
        after = result.levels[metric.name]
        known = ~np.isnan(before.chance)
        result.levels[metric.name] = replace(
            after, chance=np.where(known, before.chance, after.chance), good=np.where(known, before.good, after.good)
        )


def _duplicates(samples: Sequence[Sample], langs: Sequence[str], warnings: list[str]) -> list[dict[int, Fault]]:
    if len(samples) > _MOST_NEAR:
        warnings.append(f"duplicates are not looked for among more than {_MOST_NEAR:,} captions.")
        return []
    return [duplicate_faults(samples, langs)]


def _references(samples: Sequence[Sample], langs: Sequence[str], metric: EmbeddingMetric, seed: int) -> dict[int, Fault]:
    if not any(sample.references for sample in samples):
        return {}
    (collector,) = metric.collectors()
    assert isinstance(collector, CosineCollector)
    return reference_faults(samples, langs, collector, seed)

"""Translating captions and references: every distinct text once, the best of its translations kept, with how it was chosen."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import CROSSMODAL_3600, base_language
from caplens.data.sample import SOURCE_REFERENCES, Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.scoring import run_metrics
from caplens.progress import logger, note_kept, track
from caplens.results.scores import ScoreResult
from caplens.terminal import visible
from caplens.text.identification import LanguageModel, default_model
from caplens.translation.base import Hypothesis, Translations, Translator, check_pair
from caplens.translation.selection import MBR, Selected, bayes_quality, distinct, in_language, select
from caplens.translation.store import HypothesisStore, translation_key

_BATCH = 64
"""Texts that are translated, and kept, together."""
Unit = tuple[str, str]
"""A text, and the image for which its translation is chosen; empty where no estimate looks at images."""
QUALITY = "quality"
"""The column of the first quality estimate, by which `bench` splits translations."""


@dataclass(frozen=True)
class TranslationOptions:
    """How texts are translated.

    Parameters
    ----------
    nbest
        Translations that the translator is asked for.
    metrics
        Quality estimates by which one of them is chosen; without any, the first is kept.
    mbr
        Whether the one that is most like the others is chosen, alone or beside the estimates.
    check_language
        Whether translations in another language are dropped.
    language_model
        What identifies languages; by default py3langid.
    plausible
        Languages that a translation may be in by mistake; by default the 36 of Crossmodal-3600.
    store
        Where translations are kept; by default in the user's cache.
    """

    nbest: int = 1
    metrics: Sequence[Metric] = ()
    mbr: bool = False
    check_language: bool = True
    language_model: LanguageModel | None = None
    plausible: Sequence[str] = tuple(CROSSMODAL_3600)
    store: HypothesisStore = field(default_factory=HypothesisStore)

    def __post_init__(self) -> None:
        if not 1 <= self.nbest <= 1000:
            raise InputError(f"between 1 and 1,000 translations of each text can be asked for, not {self.nbest}.")


@dataclass
class TranslationReport:
    """What became of the texts."""

    texts: int = 0
    translated: int = 0
    changed: int = 0
    """Texts of which another translation than the first was kept."""
    wrong_language: int = 0
    """Texts without any translation in the target language."""
    first_in_wrong_language: int = 0
    """Texts whose first translation is in another language."""
    failed: dict[str, int] = field(default_factory=dict)
    """Why texts were not translated -> how many."""


def translate_samples(
    samples: Sequence[Sample], translator: Translator, target: str, source: str = "en", options: TranslationOptions | None = None
) -> tuple[list[Sample], TranslationReport]:
    """The samples in another language.

    Parameters
    ----------
    samples
        Captions, references, or both.
    translator
        What translates them.
    target, source
        Codes of languages; captions that name another language than the source are an error.
    options
        How one of several translations is chosen.

    Returns
    -------
    list of Sample, TranslationReport
        The samples with their ids, translated captions and references, the old caption as `source`, and in `meta` how the
        translation was chosen. One that could not be translated has no caption, and `translation_error` says why.

    Raises
    ------
    InputError
        If the languages are the same, or the translator does not know them.
    """
    options = options or TranslationOptions()
    source, target = check_pair(source, target)
    foreign = next((sample for sample in samples if sample.lang and base_language(sample.lang) != source), None)
    if foreign is not None:
        raise InputError(
            f"the caption {foreign.id!r} is in {foreign.lang!r}, not in {source!r}; translate one language at a time."
        )
    translator.check_languages(source, target)
    if options.check_language:
        # Before anything is translated: it may not be installed.
        model = options.language_model or default_model()
        if not model.knows(target):
            logger.warning(f"{model.name} does not know {target!r}: only the writing system of translations is checked.")
    # Where an estimate looks at the image, a text is chosen for each of its images.
    looks = any("image" in metric.needs for metric in options.metrics)
    images = {_unit(text, sample, looks): sample.image for sample in samples for text in _texts_of(sample)}
    texts = list(dict.fromkeys(text for sample in samples for text in _texts_of(sample)))
    _warn_of_replaced_columns(samples)
    note_kept("Translations are kept, and the same command goes on.")
    translations = _translate_all(texts, translator, source, target, options)
    selected = _select_all(images, translations, target, source, options)
    translated = [_translated(sample, selected, translations, target, translator, looks=looks) for sample in samples]
    return translated, _report(images, selected, translations)


def _report(
    images: Mapping[Unit, Any], selected: Mapping[Unit, Selected], translations: Mapping[str, Translations]
) -> TranslationReport:
    report = TranslationReport(texts=len(images), translated=len(selected))
    for unit in images:
        if unit in selected:
            report.changed += selected[unit].changed
            report.wrong_language += not selected[unit].right_language
            report.first_in_wrong_language += not selected[unit].first_in_language
        else:
            why = translations[unit[0]].error or "the translator gave nothing"
            report.failed[why] = report.failed.get(why, 0) + 1
    return report


_COLUMNS = (
    QUALITY, "qualities", "rank", "changed", "right_language", "candidates", "wrong_language", "log_probability",
    "translator", "translation_error", SOURCE_REFERENCES,
)  # fmt: skip


def _warn_of_replaced_columns(samples: Sequence[Sample]) -> None:
    replaced = sorted({name for sample in samples for name in sample.meta if name in _COLUMNS})
    if replaced:
        logger.warning(f"the columns {', '.join(replaced)} of the input are replaced by those of the new translations.")


def _unit(text: str, sample: Sample, looks: bool) -> Unit:
    return text, str(sample.group) if looks else ""


def _texts_of(sample: Sample) -> Iterator[str]:
    """The texts of a sample that can be translated."""
    return (text for text in (sample.caption, *sample.references) if text and text.strip())


def _translate_all(
    texts: Sequence[str], translator: Translator, source: str, target: str, options: TranslationOptions
) -> dict[str, Translations]:
    """Text -> its translations, from the store where they are there. Each batch is kept before the next begins."""
    keys = {text: translation_key(text, source, target, options.nbest, translator.fingerprint) for text in texts}
    stored = options.store.get(list(keys.values()))
    translations = {text: Translations(stored[key]) for text, key in keys.items() if key in stored}
    # Texts of one length are translated together, and the order does not depend on what is in the store.
    missing = sorted((text for text in texts if text not in translations), key=lambda text: (len(text), text))
    size = getattr(translator, "batch", _BATCH)
    batches = [missing[start : start + size] for start in range(0, len(missing), size)]
    for batch in track(batches, f"translating into {target}", len(missing), size=len):
        results = translator.translate(batch, source, target, options.nbest)
        options.store.put(
            {
                keys[text]: result.hypotheses
                for text, result in zip(batch, results, strict=True)
                if result.complete and not result.error
            }
        )
        translations.update(zip(batch, results, strict=True))
    return translations


def _select_all(
    images: Mapping[Unit, Any], translations: Mapping[str, Translations], target: str, source: str, options: TranslationOptions
) -> dict[Unit, Selected]:
    """Text, and image where that matters -> the translation that is kept, of texts that have any."""
    candidates = {unit: texts for unit in images if (texts := distinct(translations[unit[0]].hypotheses))}
    qualities = _qualities(candidates, images, target, options.metrics)
    selected = {}
    for unit, hypotheses in track(candidates.items(), "choosing translations", len(candidates)):
        words = [hypothesis.text for _, hypothesis in hypotheses]
        right = [True] * len(words)
        if options.check_language:
            right = in_language(words, target, [source, *options.plausible], options.language_model)
        estimates = dict(qualities.get(unit, {}))
        if options.mbr:
            estimates[MBR] = bayes_quality(words)
        selected[unit] = select(hypotheses, right, estimates)
    return selected


def _qualities(
    candidates: Mapping[Unit, Sequence[tuple[int, Hypothesis]]],
    images: Mapping[Unit, Any],
    target: str,
    metrics: Sequence[Metric],
) -> dict[Unit, dict[str, Floats]]:
    """Text and image -> quality estimate -> its value for each hypothesis, higher is better."""
    if not metrics:
        return {}
    samples = [
        Sample(f"{number} {place}", hypothesis.text, image=images[unit], source=unit[0], lang=target)
        for number, (unit, hypotheses) in enumerate(candidates.items())
        for place, hypothesis in hypotheses
    ]
    result = run_metrics(track(samples, "estimating quality", len(samples)), metrics)
    _warn_of_estimates(result)
    by_unit: dict[Unit, dict[str, Floats]] = {}
    start = 0
    for unit, hypotheses in candidates.items():
        part = slice(start, start + len(hypotheses))
        start += len(hypotheses)
        by_unit[unit] = {
            metric.name: np.where(getattr(metric, "lower_is_better", False), -1.0, 1.0) * result[metric.name].values[part]
            for metric in metrics
        }
    return by_unit


def _warn_of_estimates(result: ScoreResult) -> None:
    for warning in result.warnings:
        logger.warning(warning)
    for name, scores in result.metrics.items():
        if scores.errors:
            why = Counter(error.reason for error in scores.errors.values()).most_common(1)[0][0]
            logger.warning(f"{name}: {len(scores.errors):,} translations have no estimate ({why}); others are preferred to them.")


def _translated(
    sample: Sample,
    selected: Mapping[Unit, Selected],
    translations: Mapping[str, Translations],
    target: str,
    translator: Translator,
    *,
    looks: bool,
) -> Sample:
    references = _translated_references(sample, selected, looks)
    # What is said about another translation does not belong to this one.
    meta: dict[str, Any] = {name: value for name, value in sample.meta.items() if name not in _COLUMNS}
    meta["translator"] = visible(translator.name)
    caption = sample.caption if sample.caption and sample.caption.strip() else None
    chosen = selected.get(_unit(caption, sample, looks)) if caption else None
    if chosen is not None:
        meta |= _choice(chosen)
    elif caption:
        meta["translation_error"] = translations[caption].error or "the translator gave nothing"
    if references:
        meta[SOURCE_REFERENCES] = [text for text in sample.references if text in references]
    texts = tuple(references[text] for text in meta.get(SOURCE_REFERENCES, ()))
    return replace(sample, caption=chosen and chosen.text, references=texts, source=caption, lang=target, meta=meta)


def _translated_references(sample: Sample, selected: Mapping[Unit, Selected], looks: bool) -> dict[str, str]:
    """Reference -> its translation, of those that have one."""
    units = {text: _unit(text, sample, looks) for text in sample.references}
    return {text: selected[unit].text for text, unit in units.items() if unit in selected}


def _choice(chosen: Selected) -> dict[str, Any]:
    """How a translation was chosen, as columns."""
    columns: dict[str, Any] = {"rank": chosen.rank, "changed": chosen.changed, "right_language": chosen.right_language}
    columns |= {"candidates": chosen.candidates, "wrong_language": chosen.wrong_language}
    if chosen.log_probability is not None:
        columns["log_probability"] = round(chosen.log_probability, 6)
    if chosen.scores:
        columns[QUALITY] = round(next(iter(chosen.scores.values())), 6)
        columns["qualities"] = {name: round(value, 6) for name, value in chosen.scores.items()}
    return columns

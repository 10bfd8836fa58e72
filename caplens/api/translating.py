"""Translating captions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from caplens.api.metrics import Metrics, metrics_of
from caplens.data.inputs import Captions, ImagesInput, read_captions
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.scoring import KeepColumns
from caplens.results.scores import ScoreResult
from caplens.stats import RESAMPLES
from caplens.terminal import visible
from caplens.text.identification import LanguageModel
from caplens.translation import TranslationOptions, TranslationReport, Translator, load_translator, translate_samples
from caplens.translation.selection import MBR
from caplens.translation.store import HypothesisStore


def translate(
    samples: Captions,
    to: str,
    translator: str | Translator,
    *,
    source: str = "en",
    nbest: int = 1,
    beams: int = 5,
    qe: Metrics | None = None,
    images: ImagesInput = None,
    check_language: bool = True,
    language_model: LanguageModel | None = None,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> tuple[list[Sample], TranslationReport]:
    """Translate captions and references, and keep the best of several translations.

    Parameters
    ----------
    samples
        Captions, as `score` takes them.
    to, source
        Codes of the languages to translate into and from.
    translator
        `hf:ORG/NAME`, `ct2:ORG/NAME`, `endpoint:URL,model=NAME`, `file:PATH`, or a `Translator`.
    nbest, beams
        How many translations of each text are asked for, and how many beams are searched.
    qe
        By which metrics one of them is chosen, such as `mini-qe`, `use-qe`, `cometkiwi` or, with images, `clipscore`; `mbr` for
        the one that is most like the others. Several are combined by ranks. Without, the first is kept.
    images
        As for `score`, for metrics that look at the image.
    check_language, language_model
        Whether translations in another language are dropped, and what identifies languages.
    options, **keywords
        As for `score`: `model`, `qe_model`, `device`, `store`, ….

    Returns
    -------
    list of Sample, TranslationReport
        The samples with translated captions, and what became of the texts.

    Raises
    ------
    InputError
        If the translator does not know the languages, or something that was passed cannot be used.

    Examples
    --------
    >>> translated, report = caplens.translate("captions.jsonl", "de", "file:german.jsonl")  # doctest: +SKIP
    """
    options = ScoringOptions.of(options, **keywords)
    names = [name.strip() for name in qe.split(",")] if isinstance(qe, str) else list(qe or ())
    metrics = metrics_of("score", [name for name in names if name != MBR], images, options) if set(names) - {MBR} else []
    unsuitable = next((metric.name for metric in metrics if "references" in metric.needs), None)
    if unsuitable is not None:
        raise InputError(f"{unsuitable} needs references, and a translation has none; choose a quality estimate such as mini-qe.")
    if isinstance(translator, str):
        translator = load_translator(translator, max(beams, nbest), options.load_options())
    settings = TranslationOptions(
        nbest,
        metrics,
        MBR in names,
        check_language,
        language_model,
        store=HypothesisStore.beside_vectors(options.store, options.keep_store),
    )
    originals = list(read_captions(samples, None, None, None))
    with_images = list(read_captions(originals, None, images, None))
    translated, report = translate_samples(with_images, translator, to, source, settings)
    # The output names images as the input does.
    return [replace(new, image=old.image) for old, new in zip(originals, translated, strict=True)], report


def score_via_english(
    samples: Captions,
    metrics: Metrics | None = None,
    *,
    translator: str | Translator,
    images: ImagesInput = None,
    source: str | None = None,
    strict: bool = False,
    keep_columns: KeepColumns = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> ScoreResult:
    """Translate captions into English and score the translations: the baseline for multilingual models.

    Parameters
    ----------
    samples, metrics, images, strict, keep_columns, resamples, seed, options, **keywords
        As for `score`. Translations are kept where vectors are.
    translator
        As for `translate`.
    source
        The language of captions that name none.

    Returns
    -------
    ScoreResult
        With `via` in the signatures. Captions that could not be translated have no score.

    Raises
    ------
    InputError
        If the translator does not know a language, or no caption can be scored.

    Examples
    --------
    >>> caplens.score_via_english("german.jsonl", ["clipscore"], translator="hf:ORG/NAME", images="photos")  # doctest: +SKIP
    """
    from caplens.api.scoring import score

    options = ScoringOptions.of(options, **keywords)
    if isinstance(translator, str):
        translator = load_translator(translator, options=options.load_options())
    joined = list(read_captions(samples, None, images, options.lang))
    settings, failed = (
        TranslationOptions(check_language=False, store=HypothesisStore.beside_vectors(options.store, options.keep_store)),
        0,
    )
    by_language: dict[str, list[Sample]] = {}
    for sample in joined:
        by_language.setdefault(sample.lang or source or options.lang or "en", []).append(sample)
    _check_ids(joined)
    english: dict[int, Sample] = {}
    for lang, of_language in by_language.items():
        rows = of_language
        if lang != "en":
            rows, report = translate_samples(of_language, translator, "en", lang, settings)
            failed += sum(report.failed.values())
            rows = [_english(sample) for sample in rows]
        english.update((id(old), new) for old, new in zip(of_language, rows, strict=True))
    result = score(
        [english[id(sample)] for sample in joined], metrics, strict=strict, keep_columns=keep_columns,
        resamples=resamples, seed=seed, options=replace(options, lang="en"),
    )  # fmt: skip
    lost = sum(len(sample.references) > len(english[id(sample)].references) for sample in joined)
    if failed:
        result.warnings.append(
            f"{failed:,} texts could not be translated into English, so {lost:,} captions have fewer references."
        )
    via = f"|via:{visible(translator.name)}@{translator.fingerprint[:8]}"
    result.metrics = {name: replace(scores, signature=scores.signature + via) for name, scores in result.metrics.items()}
    return result


def _check_ids(samples: Sequence[Sample]) -> None:
    """An error for an id of captions in several languages, which become one."""
    langs: dict[tuple[str, str | None], str | None] = {}
    for sample in samples:
        if langs.setdefault((sample.id, sample.system), sample.lang) != sample.lang:
            raise InputError(
                f"the id {sample.id!r} is of captions in several languages, which all become English. Score one language at a"
                " time, or give each caption its own id."
            )


def _english(sample: Sample) -> Sample:
    """The translated sample, or why it has no score."""
    error = sample.meta.get("translation_error")
    return sample if error is None else replace(sample, invalid=f"it could not be translated into English: {error}")


def suffixes(langs: Sequence[str], output: Path) -> dict[str, Path]:
    """Language -> the file to write: the output itself for one language, with the language before its suffix for several."""
    if len(langs) == 1:
        return {langs[0]: output}
    return {lang: output.with_name(f"{output.stem}.{lang}{output.suffix}") for lang in langs}

"""Benchmarks in more languages: English captions and references are replaced by translations, which keep their judgements.

The translations of a benchmark are in a file `NAME.LANG.jsonl` (or CSV, TSV, Parquet) beside its own files, with the ids of
`caplens bench NAME --export-items`; `caplens translate` writes it. Multilingual CLIPScore and PR-MCS did so for VICR, VALSE,
XVNLI, Composite and Flickr8k.
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from caplens.benchmarks.base import Benchmark, BenchmarkData
from caplens.data.formats.json_document import finite_number
from caplens.data.languages import base_language, language_names
from caplens.data.reading import SampleFile
from caplens.data.sample import SOURCE_REFERENCES, Sample
from caplens.errors import InputError

ENGLISH = "en"


def languages_of(benchmark: Benchmark[Any], home: Path) -> list[str]:
    """The languages that the benchmark's own files have, and those of translations of its English captions."""
    own = benchmark.languages(home)
    translated = _files(benchmark, home) if ENGLISH in own else {}
    return [*own, *(lang for lang in sorted(translated) if lang not in own)]


def is_translated(benchmark: Benchmark[Any], home: Path, lang: str) -> bool:
    """Whether captions in this language are translations in a file beside the benchmark's own."""
    if lang not in _files(benchmark, home):
        return False
    own = benchmark.languages(home)
    return ENGLISH in own and lang not in own


def _files(benchmark: Benchmark[Any], home: Path) -> dict[str, Path]:
    """Language -> file."""
    files: dict[str, Path] = {}
    for path in sorted(home.glob(f"{benchmark.name}.*.*")):
        lang = path.name.removeprefix(f"{benchmark.name}.").split(".")[0]
        if lang in language_names() and files.setdefault(base_language(lang), path) != path:
            raise InputError(f"{home}: {files[base_language(lang)].name} and {path.name} are both translations. Remove one.")
    return files


def translation_target(benchmark: Benchmark[Any], home: Path, lang: str) -> Path:
    """The file to write translations into; an error where there are others that no translator of caplens made."""
    target = home / f"{benchmark.name}.{lang}.jsonl"
    present = _files(benchmark, home).get(lang, target)
    if present != target:
        raise InputError(f"{present}: there are translations into {lang!r} already. Move this file away.")
    if target.is_file() and any("translator" not in sample.meta for sample in SampleFile(target, caption_required=False)):
        raise InputError(f"{target}: these translations were not made by 'caplens translate'. Move this file away.")
    return target


def load_translated(benchmark: Benchmark[Any], home: Path, protocol: str, lang: str) -> BenchmarkData:
    """The English data with translated captions and references; what is not translated has no caption, and a warning."""
    path = _files(benchmark, home)[lang]
    translations = _read_translations(path, lang)
    english: BenchmarkData = benchmark.load(home, protocol, ENGLISH)
    if not any(sample.id in translations for sample in english.samples):
        raise InputError(
            f"{path}: none of its ids is one of {benchmark.name}, such as {english.samples[0].id!r}. Make the file with"
            " 'caplens translate'."
        )
    samples = [_translated(sample, translations.get(sample.id), lang, path) for sample in english.samples]
    missing = sum(sample.invalid is not None for sample in samples)
    lost = sum(len(old.references) > len(new.references) for old, new in zip(english.samples, samples, strict=True))
    warnings = [
        *english.warnings,
        *([f"{missing:,} captions have no translation and are left out."] if missing else []),
        *([f"{lost:,} captions have fewer references than in English: not all are translated."] if lost else []),
    ]
    return replace(english, samples=samples, warnings=warnings)


def _read_translations(path: Path, lang: str) -> dict[str, Sample]:
    """Id -> translation."""
    translations: dict[str, Sample] = {}
    for sample in SampleFile(path, caption_required=False):
        if sample.lang is not None and base_language(sample.lang) != lang:
            raise InputError(f"{path}: the caption {sample.id!r} is in {sample.lang!r}, not in {lang!r} as the file's name says.")
        if translations.setdefault(sample.id, sample) is not sample:
            raise InputError(f"{path}: the id {sample.id!r} appears twice. Keep one translation of each caption.")
    return translations


def _translated(sample: Sample, translation: Sample | None, lang: str, path: Path) -> Sample:
    if translation is None or not translation.caption:
        return replace(sample, caption="", references=(), lang=lang, invalid=f"there is no translation into {lang!r}")
    if translation.source is not None and _words(translation.source) != _words(sample.caption):
        raise InputError(
            f"{path}: {sample.id!r} is the translation of {translation.source!r}, and here that id is of {sample.caption!r}."
            " Translate this protocol of these files with 'caplens translate'."
        )
    references = _translated_references(sample, translation, path)
    return replace(sample, caption=translation.caption, references=references, lang=lang, source=sample.caption)


def _translated_references(sample: Sample, translation: Sample, path: Path) -> tuple[str, ...]:
    """The translations of the sample's references: by their English texts, where the file has these, else all that there are."""
    originals = translation.meta.get(SOURCE_REFERENCES)
    if isinstance(originals, list) and len(originals) == len(translation.references):
        by_text = {_words(str(text)): reference for text, reference in zip(originals, translation.references, strict=True)}
        return tuple(by_text[_words(text)] for text in sample.references if _words(text) in by_text)
    if len(translation.references) > len(sample.references):
        raise InputError(
            f"{path}: {sample.id!r} has {len(translation.references)} references, and {len(sample.references)} in English."
            " Translate this protocol of these files with 'caplens translate'."
        )
    return translation.references


def _number(value: object) -> float | None:
    """A number, also as the text that it is in CSV."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return finite_number(value)


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def kept_qualities(benchmark: Benchmark[Any], home: Path) -> dict[tuple[str, str], float]:
    """(language, id) -> the quality that `caplens translate` estimated, from the files of translations."""
    return {
        (lang, identifier): quality
        for lang, path in _files(benchmark, home).items()
        for identifier, sample in _read_translations(path, lang).items()
        if sample.caption and (quality := _number(sample.meta.get("quality"))) is not None
    }

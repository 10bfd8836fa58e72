"""References from a file of their own, joined to captions by id, and by language where both sides name one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike

from caplens.data.languages import base_language
from caplens.data.media import ImageSource
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.errors import InputError

Texts = tuple[str, ...]


class References:
    """Reference captions by id and language."""

    def __init__(self, source: str = "the references") -> None:
        self.source = source
        self._texts: dict[str, dict[str | None, Texts]] = {}
        self._images: dict[str, ImageSource] = {}

    @classmethod
    def of(cls, mapping: Mapping[str, Sequence[str] | str]) -> "References":
        """From id -> texts, or id -> one text."""
        made = cls()
        for identifier, texts in mapping.items():
            made.add(str(identifier), None, (texts,) if isinstance(texts, str) else tuple(texts))
        return made

    def add(self, identifier: str, lang: str | None, texts: Texts, image: ImageSource | None = None) -> None:
        """`image` is for captions that do not name theirs: in COCO's files the annotations do."""
        if image is not None:
            self._images.setdefault(identifier, image)
        by_language = self._texts.setdefault(identifier, {})
        by_language[lang] = by_language.get(lang, ()) + texts

    def __iter__(self) -> Iterator[tuple[str, str | None, Texts]]:
        for identifier, by_language in self._texts.items():
            for lang, texts in by_language.items():
                yield identifier, lang, texts

    def get(self, sample: Sample, lang: str | None = None) -> Texts:
        """Those of the sample's id and language, and those of no language.

        A sample that names no language is in `lang`; if that is not known either, it takes those of any one language.
        """
        by_language = self._texts.get(sample.id, {})
        lang = sample.key[1] or (base_language(lang) if lang else None)
        languages = [found for found in by_language if found is not None]
        if lang is None and len(languages) > 1:
            raise InputError(
                f"{self.source}: the references of {sample.id!r} are in several languages, and the caption names none."
                " Give each caption its 'lang', or all of them with --lang."
            )
        lang = lang or next(iter(languages), None)
        return by_language.get(None, ()) + (by_language.get(lang, ()) if lang else ())

    def joined(self, samples: Iterable[Sample], lang: str | None = None) -> Iterator[Sample]:
        """Each sample with its references added to those it has. It is an error if not one of them has any here."""
        matched, example = False, None
        for sample in samples:
            found = self.get(sample, lang)
            matched = matched or bool(found)
            example = example or sample.id
            image = self._images.get(sample.id) if sample.image is None else sample.image
            changed = found or image is not sample.image
            yield replace(sample, references=sample.references + found, image=image) if changed else sample
        if not matched and example is not None:
            raise InputError(
                f"{self.source}: none of its ids is an id of the captions (references: {next(iter(self._texts), None)!r};"
                f" captions: {example!r}). Use the same ids, and the same languages, in both files."
            )


def read_references(path: str | PathLike[str]) -> References:
    """References from any format. Rows without `references` give their caption, and rows of one id add up."""
    references = References(str(path))
    for place, sample in SampleFile(path, caption_required=False).placed():
        texts = sample.references or ((sample.caption,) if sample.caption else ())
        if not texts:
            raise InputError(f"{place}: the id {sample.id!r} has no references in this file.")
        references.add(*sample.key, texts, sample.image)
    return references

"""References from a separate file, joined to captions by id, and by language where both sides have one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike

from caplens.data.languages import base_language
from caplens.data.media import ImageSource
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.errors import InputError, option

Texts = tuple[str, ...]


class References:
    """Reference captions by id and language.

    Parameters
    ----------
    source
        Where the references come from, for error messages.
    """

    def __init__(self, source: str = "the references") -> None:
        self.source = source
        self._texts: dict[str, dict[str | None, Texts]] = {}
        self._images: dict[str, ImageSource] = {}

    @classmethod
    def of(cls, mapping: Mapping[str, Sequence[str] | str]) -> "References":
        """Build references from a mapping of id -> texts, or id -> one text.

        Parameters
        ----------
        mapping
            The references of each id; they have no language.

        Examples
        --------
        >>> list(References.of({"1": ["a dog", "the dog"], "2": "a cat"}))
        [('1', None, ('a dog', 'the dog')), ('2', None, ('a cat',))]
        """
        references = cls()
        for identifier, texts in mapping.items():
            references.add(str(identifier), None, (texts,) if isinstance(texts, str) else tuple(texts))
        return references

    def add(self, identifier: str, lang: str | None, texts: Texts, image: ImageSource | None = None) -> None:
        """Add references of one id and language to those already there.

        Parameters
        ----------
        identifier
            The id of the captions that the references belong to.
        lang
            The language of the references; None matches captions in any language.
        texts
            The references.
        image
            The image of captions that do not name one: in COCO files only the annotations do.
        """
        if image is not None:
            self._images.setdefault(identifier, image)
        by_language = self._texts.setdefault(identifier, {})
        by_language[lang] = by_language.get(lang, ()) + texts

    def __iter__(self) -> Iterator[tuple[str, str | None, Texts]]:
        for identifier, by_language in self._texts.items():
            for lang, texts in by_language.items():
                yield identifier, lang, texts

    def get(self, sample: Sample, lang: str | None = None) -> Texts:
        """Return the references of a sample: those of its id and language, and those without a language.

        Parameters
        ----------
        sample
            The caption whose references are looked up.
        lang
            The language of a sample that has none. If this is None too, the references may be in any one language.

        Returns
        -------
        tuple of str
            Empty if there are none.

        Raises
        ------
        InputError
            If the references are in several languages and that of the sample is unknown.
        """
        by_language = self._texts.get(sample.id, {})
        lang = sample.key[1] or (base_language(lang) if lang else None)
        languages = [code for code in by_language if code is not None]
        if lang is None and len(languages) > 1:
            raise InputError(
                f"{self.source}: the references of {sample.id!r} are in several languages, and the caption has no 'lang'."
                f" Give each caption its 'lang', or pass {option('lang')} for all captions."
            )
        lang = lang or next(iter(languages), None)
        return by_language.get(None, ()) + (by_language.get(lang, ()) if lang else ())

    def joined(self, samples: Iterable[Sample], lang: str | None = None) -> Iterator[Sample]:
        """Yield each sample with its references added, and with its image if it has none.

        Parameters
        ----------
        samples
            The captions; references that they already have come first.
        lang
            The language of samples that have none.

        Raises
        ------
        InputError
            After the last sample, if no sample has references here.
        """
        matched, example = False, None
        for sample in samples:
            references = self.get(sample, lang)
            matched = matched or bool(references)
            example = example or sample.id
            image = self._images.get(sample.id) if sample.image is None else sample.image
            changed = references or image is not sample.image
            yield replace(sample, references=sample.references + references, image=image) if changed else sample
        if not matched and example is not None:
            raise InputError(
                f"{self.source}: none of its ids is an id of the captions (references: {next(iter(self._texts), None)!r};"
                f" captions: {example!r}). Use the same ids, and the same languages, in both files."
            )


def read_references(path: str | PathLike[str]) -> References:
    """Read references from a file in any supported format.

    Rows without `references` contribute their caption. Rows with the same id are combined.

    Parameters
    ----------
    path
        The file; `-` is standard input.

    Returns
    -------
    References
        By id and language, for `score` and the like.

    Raises
    ------
    InputError
        If the file cannot be read, or an id has no references.

    Examples
    --------
    >>> references = caplens.read_references("captions_val2014.json")  # doctest: +SKIP
    >>> caplens.score("results.json", ["cider"], references=references)  # doctest: +SKIP
    """
    references = References(str(path))
    for place, sample in SampleFile(path, caption_required=False).placed():
        texts = sample.references or ((sample.caption,) if sample.caption else ())
        if not texts:
            raise InputError(f"{place}: the id {sample.id!r} has no references in this file.")
        references.add(*sample.key, texts, sample.image)
    return references

"""References from a separate file, joined to captions by id, and by language where both sides have one.

A row may have an `id` of its own beside the `image_id` of its image. The rule is the same for every format: captions and
references are joined by the columns in which they have ids in common, and it is an error if two pairs of columns join them
differently.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike

from caplens.data.languages import base_language
from caplens.data.media import ImageSource
from caplens.data.reading import SampleFile
from caplens.data.sample import IMAGE_ID, Sample
from caplens.errors import InputError, option
from caplens.progress import logger

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
        self._by_column: dict[str, _ById] = {"id": _ById(), IMAGE_ID: _ById()}
        """The references by `id`, and those of rows that have both by their `image_id` too."""

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
        if len({str(identifier) for identifier in mapping}) < len(mapping):
            raise InputError("two keys of the references are the same id once they are texts, such as 1 and '1'. Remove one.")
        for identifier, texts in mapping.items():
            references.add(str(identifier), None, _as_texts(identifier, texts))
        return references

    def add(
        self, identifier: str, lang: str | None, texts: Texts, image: ImageSource | None = None, image_id: str | None = None
    ) -> None:
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
        image_id
            The id of the image, where the references have it beside an id of their own.
        """
        self._by_column["id"].add(identifier, lang, texts, image)
        if image_id is not None:
            self._by_column[IMAGE_ID].add(image_id, lang, texts, image)

    def __iter__(self) -> Iterator[tuple[str, str | None, Texts]]:
        """Each id, language and references; an error if they could be those of an id, or those of an image with several ids."""
        by_id, by_image = (len(self._by_column[column].texts) for column in ("id", IMAGE_ID))
        if 0 < by_image < by_id:
            raise InputError(
                f"{self.source}: its rows have both 'id' and 'image_id', and {by_id:,} ids but {by_image:,} images; both could be"
                " meant. Remove the column that is not."
            )
        for identifier, by_language in self._by_column["id"].texts.items():
            for lang, texts in by_language.items():
                yield identifier, lang, tuple(texts)

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
        return self._texts_of(sample.id, sample, lang)

    def _texts_of(self, identifier: str, sample: Sample, lang: str | None, column: str = "id") -> Texts:
        by_language = self._by_column[column].texts.get(identifier)
        if by_language is None:
            return ()
        lang = sample.key[1] or (base_language(lang) if lang else None)
        languages = [code for code in by_language if code is not None]
        if lang is None and len(languages) > 1:
            raise InputError(
                f"{self.source}: the references of {identifier!r} are in several languages, and the caption has no 'lang'."
                f" Give each caption its 'lang', or pass {option('lang')} for all captions."
            )
        lang = lang or next(iter(languages), None)
        return (*by_language.get(None, ()), *(by_language.get(lang, ()) if lang else ()))

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
        join = _Join(self, lang)
        waiting: list[Sample] = []
        example = None
        for sample in samples:
            example = example or sample.id
            matched = () if join.columns is None and _has_same_ids(sample) else join.references(sample)
            if join.columns is None and sample.meta.get(IMAGE_ID) is not None:
                # Which of its ids counts is known once a caption has references.
                waiting.append(sample)
                continue
            yield from (join.joined(earlier, join.references(earlier)) for earlier in waiting)
            waiting.clear()
            yield join.joined(sample, matched)
        yield from (join.joined(earlier, join.references(earlier)) for earlier in waiting)
        if not join.matched and example is not None:
            first = next(iter(self._by_column["id"].texts), None)
            raise InputError(
                f"{self.source}: none of its ids is an id of the captions (references: {first!r}; captions: {example!r}). Use the"
                " same ids, and the same languages, in both files."
            )

    def image_of(self, identifier: str, column: str = "id") -> ImageSource | None:
        """The image that the references name for this id."""
        return self._by_column[column].images.get(identifier)


def _as_texts(identifier: object, texts: object) -> Texts:
    """The references of one id, as Python callers have them."""
    if isinstance(texts, str):
        return (texts,)
    listed = tuple(texts) if isinstance(texts, Iterable) and not isinstance(texts, bytes | Mapping) else None
    if listed is None or not all(isinstance(text, str) for text in listed):
        raise InputError(f"the references of {identifier!r} are texts, one or several, not {texts!r}.")
    return listed


class _ById:
    """References and images by one column."""

    def __init__(self) -> None:
        self.texts: dict[str, dict[str | None, list[str]]] = {}
        self.images: dict[str, ImageSource] = {}

    def add(self, identifier: str, lang: str | None, texts: Texts, image: ImageSource | None) -> None:
        if image is not None and str(first := self.images.setdefault(identifier, image)) != str(image):
            raise InputError(f"the references of {identifier!r} name two images, {first!r} and {image!r}. Give each its own id.")
        by_language = self.texts.setdefault(identifier, {})
        by_language.setdefault(lang, []).extend(texts)


class _Join:
    """Which column of the captions is joined to which of the references: the first two that have an id in common."""

    def __init__(self, references: References, lang: str | None) -> None:
        self._references, self._lang = references, lang
        self.columns: tuple[str, str] | None = None
        self.matched = False
        """Whether a sample has references."""
        self._seen: set[object] = set()
        self._columns_of_references = [column for column, by_id in references._by_column.items() if by_id.texts]

    def references(self, sample: Sample) -> Texts:
        """The references of a sample. An error if two pairs of columns give different ones, or this sample others than before."""
        image_id = sample.image_id
        if _has_same_ids(sample):
            return self._of_same_ids(sample)
        ids = (("id", sample.id),) if image_id is None else (("id", sample.id), (IMAGE_ID, image_id))
        matches = {
            (own, other): texts
            for own, identifier in ids
            for other in self._columns_of_references
            if (texts := self._references._texts_of(identifier, sample, self._lang, other))
        }
        if not matches:
            return ()
        if len(set(matches.values())) > 1 or self.columns not in (None, *matches):
            raise self._ambiguous(sample, matches if self.columns is None else dict.fromkeys([self.columns, *matches]))
        self.matched = True
        if self.columns is None:
            self.columns = next(iter(matches))
            if image_id is not None or self.columns != ("id", "id"):
                logger.warning(f"{self._references.source}: joined to captions by {_described(*self.columns)}.")
        return matches[self.columns]

    def _of_same_ids(self, sample: Sample) -> Texts:
        """The references of a sample with the same id in both columns, by which it cannot be told which of them counts."""
        columns = self._columns_of_references if self.columns is None else [self.columns[1]]
        matches = [texts for column in columns if (texts := self._references._texts_of(sample.id, sample, self._lang, column))]
        if len(set(matches)) > 1:
            raise self._ambiguous(sample, [("id", column) for column in columns])
        self.matched = self.matched or bool(matches)
        return matches[0] if matches else ()

    def _ambiguous(self, sample: Sample, pairs: Iterable[tuple[str, str]]) -> InputError:
        return InputError(
            f"{self._references.source}: its references could belong to the caption {sample.id!r} in several ways"
            f" ({'; '.join(_described(*pair) for pair in pairs)}). Remove or rename the column that is not meant."
        )

    def joined(self, sample: Sample, texts: Texts) -> Sample:
        """The sample with references and image; one that is joined by its `image_id` has this as its id."""
        own, other = self.columns or ("id", "id")
        if own == IMAGE_ID and sample.image_id is not None:
            meta = {name: value for name, value in sample.meta.items() if name != IMAGE_ID}
            sample = replace(sample, id=sample.image_id, meta={**meta, "id": sample.id})
            key = (sample.id, sample.system, sample.lang)
            if key in self._seen:
                sample = replace(sample, invalid=f"the image_id {sample.id!r} appears twice")
            self._seen.add(key)
        image = self._references.image_of(sample.id, other) if sample.image is None else sample.image
        changed = texts or image is not sample.image
        return replace(sample, references=sample.references + texts, image=image) if changed else sample


def _has_same_ids(sample: Sample) -> bool:
    """Whether its `id` and `image_id` are the same, so that it cannot tell which of them counts."""
    return sample.image_id is None and sample.meta.get(IMAGE_ID) is not None


def _described(own: str, other: str) -> str:
    return f"the {own!r} of captions and the {other!r} of references"


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
    for place, sample in SampleFile(path, caption_required=False, numbered=False).placed():
        texts = sample.references or ((sample.caption,) if sample.caption else ())
        if not texts:
            raise InputError(f"{place}: the id {sample.id!r} has no references in this file.")
        references.add(*sample.key, texts, sample.image, sample.image_id)
    return references

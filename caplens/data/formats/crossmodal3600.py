"""Crossmodal-3600 as it is released (`captions.jsonl`): one line per image, with its captions by language."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from caplens.data.files import Place, Source
from caplens.data.formats import jsonl
from caplens.data.rows import Row
from caplens.data.sample import IMAGE_ID
from caplens.errors import InputError

KEY, _LOCALE = "image/key", "image/locale"
_CAPTIONS, _TOKENS = "caption", "caption/tokenized/lowercase"
REGION = "locale"
"""The column of the region that an image was taken for."""


class CrossmodalImage(NamedTuple):
    """An image of the data set."""

    key: str
    region: str
    """The language that the image was chosen for."""
    captions: dict[str, tuple[str, ...]]
    """Language code of the release -> captions."""
    tokens: dict[str, tuple[str, ...]]
    """The same captions, tokenized and in lower case, of languages for which the release has them."""


def read_images(source: Source) -> Iterator[tuple[Place, CrossmodalImage]]:
    """The images of the file; an error for a line of another layout, and for an image that comes twice."""
    seen = set()
    for place, record in jsonl.read_rows(source):
        key = record.get(KEY)
        if not isinstance(key, str) or not key:
            raise InputError(f"{place}: there is no {KEY!r}; this is not a line of Crossmodal-3600.")
        if key in seen:
            raise InputError(f"{place}: the image {key} was there before. Remove one of the lines.")
        seen.add(key)
        captions, tokens = {}, {}
        for lang, entry in record.items():
            if lang not in (KEY, _LOCALE):
                captions[lang] = _texts(entry, _CAPTIONS, lang, place)
                if _TOKENS in entry:
                    tokens[lang] = _texts(entry, _TOKENS, lang, place)
                    if len(tokens[lang]) != len(captions[lang]):
                        raise InputError(f"{place}: the language {lang!r} has another number of {_TOKENS!r} than of captions.")
        yield place, CrossmodalImage(key, str(record.get(_LOCALE) or ""), captions, tokens)


def _texts(entry: Any, name: str, lang: str, place: Place) -> tuple[str, ...]:
    texts = entry.get(name) if isinstance(entry, Mapping) else None
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{place}: the language {lang!r} has no {name!r}, a list of texts.")
    return tuple(texts)


def caption_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    """One row per caption; captions of one image share its key as `image_id`."""
    for place, image in read_images(source):
        for lang, captions in image.captions.items():
            for number, caption in enumerate(captions):
                if caption.strip():
                    row = {"id": f"{image.key} {lang} {number}", IMAGE_ID: image.key, "lang": lang, "caption": caption}
                    yield place, {**row, "image": f"{image.key}.jpg", REGION: image.region}


def reference_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    """One row per image and language, with its captions as references."""
    for place, image in read_images(source):
        for lang, captions in image.captions.items():
            texts = [caption for caption in captions if caption.strip()]
            if texts:
                row = {"id": image.key, "lang": lang, "references": texts, "image": f"{image.key}.jpg"}
                yield place, {**row, REGION: image.region}

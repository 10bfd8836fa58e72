"""Splitting a caption into words and joining words into a caption, in any script.

Words are separated by spaces. Punctuation belongs to the word before it, with or without a space between. In scripts without
spaces, words come from the segmenter of the language if it is installed (the extra `cjk`); otherwise each character is a word.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from caplens.data.languages import base_language
from caplens.errors import MissingExtraError
from caplens.text.normalize import without_punctuation
from caplens.text.segmenter import Segmenter
from caplens.text.tokenizer import get_tokenizer
from caplens.text.unicode import characters, is_spaceless

_SEGMENTERS = {"ja": "ja-mecab", "th": "newmm", "zh": "jieba"}


class Word(NamedTuple):
    text: str
    place: int
    """The index of the word in the original caption; -1 for a word that was added."""
    glued: bool = False
    """Whether the word followed the previous one without a space."""


def split(caption: str, lang: str | None = None) -> list[Word]:
    """The words of a caption. `join` restores the caption, with each run of whitespace as one space."""
    words: list[Word] = []
    for chunk in caption.split():
        if words and not without_punctuation(chunk).strip():
            # Removing only a full stop would not make the caption worse.
            words[-1] = words[-1]._replace(text=f"{words[-1].text} {chunk}")
            continue
        for index, part in enumerate(_split_chunk(chunk, base_language(lang or "en"))):
            words.append(Word(part, len(words), glued=index > 0))
    return words


def join(words: Sequence[Word]) -> str:
    """The caption made of the words.

    Words that were neighbours in the original are joined as they were. Other words get a space between them, unless both are in a
    script without spaces.
    """
    caption = ""
    previous: Word | None = None
    for word in words:
        if previous is not None:
            glued = (
                word.glued if _were_neighbours(previous, word) else _needs_no_space(caption[-1]) and _needs_no_space(word.text[0])
            )
            caption += "" if glued else " "
        caption += word.text
        previous = word
    return caption


def _needs_no_space(character: str) -> bool:
    """Whether the character belongs to a script without spaces or to the punctuation of such scripts."""
    return is_spaceless(character) or "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef"


def _were_neighbours(first: Word, second: Word) -> bool:
    return first.place >= 0 and second.place == first.place + 1


def _split_chunk(chunk: str, lang: str) -> list[str]:
    """The words of a text without whitespace."""
    if not any(map(is_spaceless, chunk)):
        return [chunk]
    segmenter = _segmenter(lang)
    parts = characters(chunk) if segmenter is None else [part for part in segmenter.segments(chunk) if part]
    if "".join(parts) != chunk:
        parts = characters(chunk)
    return _attach_punctuation(parts)


def _attach_punctuation(parts: Iterable[str]) -> list[str]:
    """Append each punctuation mark to the word before it."""
    words: list[str] = []
    for part in parts:
        if words and not without_punctuation(part).strip():
            words[-1] += part
        else:
            words.append(part)
    return words


@cache
def _segmenter(lang: str) -> Segmenter | None:
    """The segmenter of a language; None if there is none or it is not installed."""
    if lang not in _SEGMENTERS:
        return None
    try:
        segmenter = get_tokenizer(_SEGMENTERS[lang], lang)
    except MissingExtraError:
        return None
    assert isinstance(segmenter, Segmenter)
    return segmenter

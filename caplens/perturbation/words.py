"""A caption as words that can be moved about and put together again, in any script.

Spaces part words; punctuation stays with the word before it, with or without a space between. Where a script has no spaces, words
are found by the language's segmenter if that is installed (the extra `cjk`), else each character is a word.
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
    """Where it stood in the caption; what is added has no place (-1)."""
    glued: bool = False
    """Whether no space stood before it."""


def split(caption: str, lang: str | None = None) -> list[Word]:
    """The words of a caption; `join` gives it back, but for the width of its spaces."""
    words: list[Word] = []
    for chunk in caption.split():
        if words and not without_punctuation(chunk).strip():
            # A caption that lost only the full stop which stands apart would not be worse.
            words[-1] = words[-1]._replace(text=f"{words[-1].text} {chunk}")
            continue
        for number, part in enumerate(_parts(chunk, base_language(lang or "en"))):
            words.append(Word(part, len(words), glued=number > 0))
    return words


def join(words: Sequence[Word]) -> str:
    """Neighbours of old keep what was between them; others get a space, unless both are in a script without spaces."""
    made = ""
    before: Word | None = None
    for word in words:
        if before is not None:
            together = (
                word.glued if _were_neighbours(before, word) else _needs_no_space(made[-1]) and _needs_no_space(word.text[0])
            )
            made += "" if together else " "
        made += word.text
        before = word
    return made


def _needs_no_space(character: str) -> bool:
    """Scripts without spaces, and the punctuation that they share."""
    return is_spaceless(character) or "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef"


def _were_neighbours(first: Word, second: Word) -> bool:
    return first.place >= 0 and second.place == first.place + 1


def _parts(chunk: str, lang: str) -> list[str]:
    if not any(map(is_spaceless, chunk)):
        return [chunk]
    segmenter = _segmenter(lang)
    found = characters(chunk) if segmenter is None else [part for part in segmenter.segment(chunk) if part]
    if "".join(found) != chunk:
        found = characters(chunk)
    return _with_punctuation(found)


def _with_punctuation(parts: Iterable[str]) -> list[str]:
    made: list[str] = []
    for part in parts:
        if made and not without_punctuation(part).strip():
            made[-1] += part
        else:
            made.append(part)
    return made


@cache
def _segmenter(lang: str) -> Segmenter | None:
    if lang not in _SEGMENTERS:
        return None
    try:
        found = get_tokenizer(_SEGMENTERS[lang], lang)
    except MissingExtraError:
        return None
    assert isinstance(found, Segmenter)
    return found

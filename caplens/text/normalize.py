"""Text normalization: Unicode form, case, and punctuation of any script."""

import re
import unicodedata


class _PunctuationTable(dict[int, str]):
    """Code point -> its replacement, for `str.translate`; filled on first use of each character.

    Letters, marks and numbers stay. Punctuation, symbols and separators of every script become spaces. Invisible formatting
    characters (soft hyphens, joiners, direction marks) are removed.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] in "LMN":
            replacement = character
        elif category == "Cf":
            replacement = ""
        else:
            replacement = " "
        self[code] = replacement
        return replacement


_PUNCTUATION_TABLE = _PunctuationTable()
_MOST_MARKS = 500
_RANGES = "300-36f 483-487 591-5bd 610-61a 64b-65f 6d6-6dc 1ab0-1aff 1dc0-1dff 20d0-20ff fe20-fe2f"
_MARK = "".join("-".join(chr(int(code, 16)) for code in pair.split("-")) for pair in _RANGES.split())
_MARKS = re.compile(f"([{_MARK}]{{{_MOST_MARKS}}})[{_MARK}]+")
"""More marks on one letter than any language has."""
_TURKIC = frozenset({"tr", "az"})
_TURKIC_CAPITALS = str.maketrans({"I": "ı", "İ": "i"})


def fold(text: str, lang: str) -> str:
    """The text in NFKC and lower case, by the rules of `lang`: Turkish and Azerbaijani keep dotted and dotless i apart.

    The Thai and Lao vowel am is recomposed, because NFKC splits it and dictionaries contain it as one character.
    """
    # Sorting marks of one letter takes the square of their number.
    text = _MARKS.sub(r"\1", text) if len(text) > _MOST_MARKS else text
    text = unicodedata.normalize("NFKC", text).replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    if lang in _TURKIC:
        text = text.translate(_TURKIC_CAPITALS)
    return text.lower()


def without_punctuation(text: str) -> str:
    """The text with punctuation, symbols and control characters of every script replaced by spaces."""
    return text.translate(_PUNCTUATION_TABLE)

"""Text normalization: Unicode form, case, and punctuation of any script."""

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
_TURKIC = frozenset({"tr", "az"})
_TURKIC_CAPITALS = str.maketrans({"I": "ı", "İ": "i"})


def fold(text: str, lang: str) -> str:
    """The text in NFKC and lower case, by the rules of `lang`: Turkish and Azerbaijani keep dotted and dotless i apart.

    The Thai and Lao vowel am is recomposed, because NFKC splits it and dictionaries contain it as one character.
    """
    text = unicodedata.normalize("NFKC", text).replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    if lang in _TURKIC:
        text = text.translate(_TURKIC_CAPITALS)
    return text.lower()


def without_punctuation(text: str) -> str:
    """The text with punctuation, symbols and control characters of every script replaced by spaces."""
    return text.translate(_PUNCTUATION_TABLE)

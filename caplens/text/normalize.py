"""Text made comparable: one form of each character, no case, no punctuation of any script."""

import unicodedata


class _Cleaning(dict[int, str]):
    """Code point -> what stays of it, filled as characters are met.

    Letters, marks and numbers stay; punctuation, symbols and separators of every script part words; invisible
    formatting (soft hyphens, joiners, direction marks) goes.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] in "LMN":
            kept = character
        elif category == "Cf":
            kept = ""
        else:
            kept = " "
        self[code] = kept
        return kept


_CLEANING = _Cleaning()
_TURKIC = frozenset({"tr", "az"})
_TURKIC_CAPITALS = str.maketrans({"I": "ı", "İ": "i"})


def fold(text: str, lang: str) -> str:
    """NFKC and lower case, as `lang` has it: Turkish and Azerbaijani keep dotted and dotless i apart.

    The Thai and Lao vowel am is put together again: NFKC takes it apart, and dictionaries have it whole.
    """
    text = unicodedata.normalize("NFKC", text).replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    if lang in _TURKIC:
        text = text.translate(_TURKIC_CAPITALS)
    return text.lower()


def without_punctuation(text: str) -> str:
    """Punctuation, symbols and control characters of every script become spaces."""
    return text.translate(_CLEANING)

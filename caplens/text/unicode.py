"""The `unicode` tokenizer: words of any script without a dictionary, the default for every language but English.

Captions are normalized to NFKC and lower case, and split at spaces and punctuation of every script. Scripts written without
spaces (Han, kana, Thai, Lao, Khmer, Burmese) are split into characters, each with its combining marks. An apostrophe inside a
word belongs to it (Ukrainian "п'ять"), except after an elision in French, Italian and Catalan ("l'eau" is two words).
"""

import re

from caplens.text.normalize import fold, without_punctuation
from caplens.text.tokenizer import Tokenizer

_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs, tone marks and joiners of those scripts, which never begin a syllable.
_COMBINING = (
    "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    "\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b6-\u17d3\u17dd\u3099\u309a\u30fc\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
_TOKEN = re.compile(rf"[{_NO_SPACES}][{_COMBINING}]*|[^\s{_NO_SPACES}]+")
_SPACELESS = re.compile(f"[{_NO_SPACES}]")
_INNER_APOSTROPHE = re.compile("(?<=[^\\W\\d_])['\u2019](?=[^\\W\\d_])")
_ELIDING = frozenset({"fr", "it", "ca"})
_MODIFIER_APOSTROPHE = "\u02bc"


def is_spaceless(character: str) -> bool:
    """Whether the character belongs to a script that is written without spaces."""
    return _SPACELESS.match(character) is not None


def characters(text: str) -> list[str]:
    """The text split into single characters, with their marks, of scripts without spaces, and the runs between them."""
    return _TOKEN.findall(text)


class UnicodeTokenizer(Tokenizer):
    name = "unicode"

    def __call__(self, text: str) -> list[str]:
        text = fold(text, self.lang)
        if self.lang not in _ELIDING and ("'" in text or "\u2019" in text):
            text = _INNER_APOSTROPHE.sub(_MODIFIER_APOSTROPHE, text)
        text = without_punctuation(text)
        return _TOKEN.findall(text) if _SPACELESS.search(text) else text.split()

"""Writing systems: which one a text is in, and which ones a language is written in."""

from bisect import bisect_right
from collections import Counter
from functools import cache, lru_cache

_RANGES = (
    ("Latin", 0x41, 0x24F), ("Latin", 0x1E00, 0x1EFF), ("Greek", 0x370, 0x3FF), ("Greek", 0x1F00, 0x1FFF),
    ("Cyrillic", 0x400, 0x52F), ("Armenian", 0x530, 0x58F), ("Hebrew", 0x590, 0x5FF), ("Arabic", 0x600, 0x77F),
    ("Arabic", 0x8A0, 0x8FF), ("Arabic", 0xFB50, 0xFDFF), ("Arabic", 0xFE70, 0xFEFF), ("Devanagari", 0x900, 0x97F),
    ("Bengali", 0x980, 0x9FF), ("Gurmukhi", 0xA00, 0xA7F), ("Gujarati", 0xA80, 0xAFF), ("Odia", 0xB00, 0xB7F),
    ("Tamil", 0xB80, 0xBFF), ("Telugu", 0xC00, 0xC7F), ("Kannada", 0xC80, 0xCFF), ("Malayalam", 0xD00, 0xD7F),
    ("Sinhala", 0xD80, 0xDFF), ("Thai", 0xE00, 0xE7F), ("Lao", 0xE80, 0xEFF), ("Tibetan", 0xF00, 0xFFF),
    ("Burmese", 0x1000, 0x109F), ("Georgian", 0x10A0, 0x10FF), ("Hangul", 0x1100, 0x11FF), ("Ethiopic", 0x1200, 0x139F),
    ("Khmer", 0x1780, 0x17FF), ("Mongolian", 0x1800, 0x18AF), ("Kana", 0x3041, 0x30FF), ("Hangul", 0x3131, 0x318E),
    ("Kana", 0x31F0, 0x31FF), ("Han", 0x3400, 0x9FFF), ("Hangul", 0xAC00, 0xD7AF), ("Han", 0xF900, 0xFAFF),
    ("Kana", 0xFF66, 0xFF9F), ("Han", 0x20000, 0x3FFFF),
)  # fmt: skip
"""Name, first and last code point; letters outside are in no script that we know."""
_SORTED = sorted(_RANGES, key=lambda entry: entry[1])
_STARTS = [start for _, start, _ in _SORTED]
_LANGUAGES = {
    "Cyrillic": "ru uk bg be mk sr kk ky tg mn tt ba cv os ce ab",
    "Greek": "el",
    "Armenian": "hy",
    "Hebrew": "he yi",
    "Arabic": "ar fa ur ug ps sd ku ckb",
    "Devanagari": "hi mr ne sa mai bho",
    "Bengali": "bn as",
    "Gurmukhi": "pa",
    "Gujarati": "gu",
    "Odia": "or",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Tibetan": "bo dz",
    "Burmese": "my",
    "Georgian": "ka",
    "Hangul": "ko",
    "Ethiopic": "am ti",
    "Khmer": "km",
    "Mongolian": "mn",
    "Kana": "ja",
    "Han": "zh ja yue",
}
_LATIN_TOO = frozenset({"sr", "ku"})
"""Languages that are written in Latin letters as well."""


@lru_cache(1024)
def script_of(text: str) -> str | None:
    """The writing system of most letters of a text; Kana where there are any among Han characters. None without letters."""
    counts = Counter(script for character in text if character.isalpha() and (script := _script(ord(character))) is not None)
    if not counts:
        return None
    script = counts.most_common(1)[0][0]
    return "Kana" if script in ("Han", "Kana") and counts["Kana"] else script


@lru_cache(10_000)
def _script(code: int) -> str | None:
    place = bisect_right(_STARTS, code) - 1
    return _SORTED[place][0] if place >= 0 and code <= _SORTED[place][2] else None


@cache
def scripts_of(lang: str) -> frozenset[str]:
    """The writing systems of a language; Latin for those that no other is known of."""
    scripts = frozenset(script for script, langs in _LANGUAGES.items() if lang in langs.split())
    return scripts | {"Latin"} if not scripts or lang in _LATIN_TOO else scripts

"""The texts of the pages, in English, German, Spanish, Chinese, Arabic, Hindi and Japanese."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español", "zh": "中文", "ar": "العربية", "hi": "हिन्दी", "ja": "日本語"}
"""Code -> what its speakers call it."""
_RIGHT_TO_LEFT = frozenset({"ar", "he", "fa", "ur", "ug"})


def direction(lang: str) -> str:
    return "rtl" if lang in _RIGHT_TO_LEFT else "ltr"


class PageTexts:
    """The texts of the pages in one language; those that it lacks are in English.

    Parameters
    ----------
    lang
        One of `LANGUAGES`; another is English.
    """

    def __init__(self, lang: str) -> None:
        self.lang = lang if lang in LANGUAGES else "en"
        self.direction = direction(self.lang)

    def __call__(self, name: str, /, **values: object) -> str:
        return _texts()[name][self.lang].format(**values)

    def has(self, name: str) -> bool:
        return name in _texts()


def preferred_language(accepted: str) -> str:
    """The first of `LANGUAGES` that an `Accept-Language` header names."""
    for part in accepted[:200].split(","):
        code = part.split(";")[0].strip().split("-")[0].lower()
        if code in LANGUAGES:
            return code
    return "en"


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    """Name -> language -> text."""
    return dict(json.loads(files("caplens.human.pages").joinpath("texts.json").read_text(encoding="utf-8")))

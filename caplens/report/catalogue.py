"""The languages of the page: sentences of results and labels of the page in German, Spanish, Chinese and Arabic.

Results say everything in English. The catalogue has templates of their sentences, with names in braces for what changes; a
sentence that fits a template is said in the language of the page, and one that fits none stays as it is.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from caplens.errors import InputError, option

LANGUAGES = ("en", "de", "es", "zh", "ar")
_RIGHT_TO_LEFT = frozenset({"ar"})
_NAME = re.compile(r"\{(\w+)\}")
_NUMBERS = frozenset("count total shown share chance good a b fix look fine value p difference".split())
"""Names that stand for numbers; others stand for any text, and sentences that happen to have the same words around them fit."""
_DEEPEST = 3
"""Templates inside of templates."""


class PageLanguage:
    """What the texts of the page are said in.

    Parameters
    ----------
    lang
        en, de, es, zh or ar.
    """

    def __init__(self, lang: str = "en") -> None:
        if lang not in LANGUAGES:
            raise InputError(f"the page speaks {', '.join(LANGUAGES)}, not {lang!r}. Choose with {option('page_lang', 'de')}.")
        self.lang = lang
        self.direction = "rtl" if lang in _RIGHT_TO_LEFT else "ltr"

    def __call__(self, text: str) -> str:
        return text if self.lang == "en" else self._said(text, _DEEPEST)

    def _said(self, text: str, depth: int) -> str:
        exact = _templates(self.lang).get(text)
        if exact is not None:
            return exact
        for pattern, translation in _patterns(self.lang) if depth else ():
            match = pattern.fullmatch(text)
            if match is not None:
                parts = {name: self._said(value, depth - 1) for name, value in match.groupdict().items()}
                return translation.format(**{name: self._isolated(part) for name, part in parts.items()})
        return text

    def _isolated(self, part: str) -> str:
        """Names and numbers keep their own direction inside a sentence that is written the other way."""
        if self.direction == "ltr":
            return part
        start = "\u2068" if any(map(str.isalpha, part)) else "\u2066"
        return f"{start}{part}\u2069"


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """English template -> language -> template."""
    return dict(json.loads(files("caplens.report").joinpath("catalogue.json").read_text(encoding="utf-8")))


@cache
def _templates(lang: str) -> Mapping[str, str]:
    return {english: said[lang] for english, said in catalogue().items() if lang in said}


@cache
def _patterns(lang: str) -> list[tuple[re.Pattern[str], str]]:
    """Of templates with names in them; those with the most of their own text come first."""
    named = [(english, said) for english, said in _templates(lang).items() if _NAME.search(english)]
    named.sort(key=lambda pair: -len(_NAME.sub("", pair[0])))
    return [(_pattern(english), said) for english, said in named]


def _pattern(template: str) -> re.Pattern[str]:
    parts = _NAME.split(template)
    return re.compile("".join(_group(part) if place % 2 else re.escape(part) for place, part in enumerate(parts)), re.DOTALL)


def _group(name: str) -> str:
    return rf"(?P<{name}>[-\d.,<%\[\] ]+)" if name in _NUMBERS else f"(?P<{name}>.+?)"

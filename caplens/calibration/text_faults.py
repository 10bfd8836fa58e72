"""Faults of a caption that its text alone shows: rules, one function each, from text to a fault or none."""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from caplens.data.languages import language_names
from caplens.results.check import Fault, Verdict
from caplens.stats.percentiles import Distribution
from caplens.text.identification import LanguageModel, identify_language
from caplens.text.normalize import without_punctuation
from caplens.text.scripts import script_of, scripts_of
from caplens.text.unicode import is_spaceless
from caplens.text.words import split

EMPTY, FILE_NAME, PLACEHOLDER, MARKUP = "empty", "file name", "placeholder", "markup"
REPEATED, CUT_OFF, LENGTH = "repeated words", "cut off", "length"
NO_CAPTION = frozenset({EMPTY, FILE_NAME, PLACEHOLDER})
"""Faults of what is no caption at all."""
SCRIPT, LANGUAGE, ENCODING = "wrong script", "wrong language", "encoding damage"

_FILE = re.compile(r"\S*[^\s.]\.(jpe?g|png|gif|webp|tiff?|bmp|heic|avif|svg|mp4|mov|avi|webm|raw|cr2|nef)", re.IGNORECASE)
_CAMERA = re.compile(
    r"(img|dsc[nf]?|dscf|pxl|mvi|vid|gopr|p|pict|image|photo|picture|scan|untitled|screenshot|screen shot|bild|foto"
    r"|bildschirmfoto|capture|immagine|imagen|whatsapp image)[ _-]*\(?\d[\d _.:()\-at]*",
    re.IGNORECASE,
)
_PLACEHOLDERS = frozenset(
    """
    image|an image|picture|a picture|photo|a photo|photograph|caption|alt|alt text|alttext|text|description|no description
    |no caption|no alt text|todo|to do|tbd|tba|fixme|n/a|na|null|none|nan|nil|undefined|unknown|untitled|title|placeholder|test
    |xxx|xx|asdf|foo|bar|foobar|image of|an image of|picture of|a picture of|photo of|a photo of
    |bild|ein bild|bild von|ein bild von
    |foto|ein foto|foto von|ein foto von|abbildung|abbildung von|beschreibung|keine beschreibung|alternativtext|platzhalter|titel
    |unbekannt|kein alternativtext|image de|une image|une image de|photo de|légende
    |aucune description|imagen|imagen de|una imagen de
    |foto de|descripción|sin descripción|immagine|immagine di|descrizione|imagem|imagem de|descrição|afbeelding|afbeelding van
    |obrázek|fotografie|popis|resim|bir resim|görsel|fotoğraf|açıklama|изображение|фото|картинка|описание|صورة|صورة ل|صورة من|وصف
    |بدون وصف|نص بديل|图片|图像|照片|一张图片|一张照片|描述|无描述|画像|写真|説明|이미지|사진|설명|छवि|चित्र|तस्वीर|विवरण
    |alt text folgt|alternativtext folgt|text folgt|folgt|kein alternativtext vorhanden|kein alt text vorhanden
    |keine bildbeschreibung
    |beschreibung fehlt|beschreibung folgt|ohne titel|ohne beschreibung|kein text|leer|alt text coming soon|no alternative text
    |missing|no text|sans titre|sans description|pas de description|sin título|sin texto|senza titolo|nessuna descrizione
    |sem título|sem descrição|لا يوجد وصف|لا يوجد نص بديل|لا يوجد|بلا عنوان|وصف الصورة
    |النص البديل|عنوان|无标题|暂无描述|無題|説明なし
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""Whole captions that say nothing, in small letters and without punctuation at their ends."""
_OPENING = re.compile(
    r"(?:(?:an?|the|this) )?(?:image|picture|photo|photograph)s? (?:of|showing|shows)\b"
    r"|(?:ein |das |dieses )?(?:bild|foto) (?:von|zeigt)\b"
    r"|(?:une |cette )?(?:image|photo) (?:de|d'un|d'une|montre|montrant)\b|(?:una |esta )?(?:imagen|foto) (?:de|muestra)\b"
    r"|(?:bild|foto|photo|image|picture|imagen|immagine|imagem|afbeelding)\s*:|صورة (?:ل|من|تظهر)|一张?(?:照片|图片)[:：]",
    re.IGNORECASE,
)
"""What an alternative text need not say, since readers know that there is an image."""
_LOREM = re.compile(r"\blorem ipsum\b|\bdolor sit amet\b", re.IGNORECASE)
_MARKUP = re.compile(
    r"</?[a-z!][^<>]*>|&(?:[a-z]{2,8}|#\d+|#x[\da-f]+);|\[[^\[\]]*\]\([^()\s]*\)|\*\*[^*]+\*\*|\{\{.*?\}\}|\bhttps?://|%20|\\[nrt]\b|\[/?[a-z]{1,6}\]",
    re.IGNORECASE,
)
_REDUPLICATING = frozenset(
    "zh yue ja ko th vi id ms jv su fil tl mi hi bn ta te ml mr gu pa ur tr az uk sw km lo my bo ug mn".split()
)
"""Languages in which a word twice in a row is ordinary: slowly slowly, side side."""
_THRICE, _LEAST_PHRASE = 3, 2
_LEAST_WORDS, _LEAST_DISTINCT = 8, 0.45
_TSHEG = "\u0f0b"
"""What stands between the syllables of Tibetan."""
_PHRASE = re.compile("(\\w[\\w\\s\u0f0b]{1,24}?)\\W*(?:\\1\\W*){2,}")
"""A piece of text three times in a row, in scripts without spaces; in others, words are compared."""
_LONG_LETTER = re.compile(r"([^\W\d_])\1{4,}")
_ENDS = {
    "en": "a an the and or but into onto while than because which whose very my your our his their",
    "de": "ein eine einen einem einer eines der die das den dem des und oder mit von vom zum zur im am ins ans beim während neben"
    " ihr ihre ihren ihrem sein seine seinen seinem einige sehr für aus bei hinter zwischen",
    "fr": "un une le la les des du de et ou à au aux dans avec en qui que sa son ses leur leurs très vers chez",
    "es": "un una el la los las de del y o en con por para que su sus muy al unos unas",
    "it": "un una uno il lo la i gli le di del della dei e o in con per che su sul sulla al alla molto",
    "pt": "um uma o a os as de do da dos das e ou em no na com por para que seu sua ao muito",
    "nl": "een de het en of met van in op aan die dat zijn haar naar bij",
    "cs": "a v na s k u do ze z po který která které nebo ve ke i pod před při za o",
    "pl": "i w na z do ze po który która które lub we od pod przed przy za o u",
    "ru": "и в на с к у из по который которая или во со от под над перед при за о",
    "uk": "і й та в у на з до із по який яка або від під над перед при за о",
    "tr": "bir ve veya ile bu",
    "hi": "एक और का की के ने को या",
    "ar": "في على من إلى مع عن و أو التي الذي الى بين تحت فوق خلف أمام بجانب",
    "sv": "en ett och eller med i på av som till sin sitt mycket",
    "da": "en et og eller med i på af som til sin sit meget",
    "no": "en et ei og eller med i på av som til sin sitt veldig",
}
"""Words after which a caption goes on, in languages with spaces between words."""
_SPACELESS_ENDS = {
    "ja": ("を", "が", "は", "に", "の", "と", "で", "や", "へ", "から", "、"),
    "zh": (
        "在",
        "和",
        "与",
        "及",
        "一个",
        "一只",
        "一名",
        "一位",
        "一条",
        "一辆",
        "一群",
        "两个",
        "穿着",
        "、",
        "，",
        "把",
        "被",
        "从",
        "向",
    ),
    "bo": ("དང་", "གི་", "གྱི་", "ཀྱི་"),
}
_CUT_SIGNS = (",", "-", "–", "—", "(", "[", "/", "&", "…", "..", "、", "،", "，", "\\")
_MOST_SHORT, _MOST_LONG = 0.1, 99.9
"""Percentiles of the lengths of good captions."""
_LONG_FACTOR, _SHORT_FACTOR = 1.5, 0.8
_LONGEST, _FEWEST_CHARACTERS = 1000, 3
_LONGEST_READ = 4000
"""Characters that rules read; a caption of more is far too long, whatever else it is."""
_SURE, _LIKELY = 0.999, 0.9
_LANGUAGE_WORDS, _LANGUAGE_LETTERS = 4, 12
_DAMAGE = re.compile(
    "\ufffd|\u00c3[\u0080-\u00bf\u0192\u2013-\u2122]|\u00e2\u20ac|\u00ef\u00bf\u00bd|[\x00-\x08\x0e-\x1f\x80-\x84\x86-\x9f]"
)
_QUESTION_MARKS = re.compile(r"[^\W\d_]\?[^\W\d_]|\?{3,}")


class TextContext(NamedTuple):
    """What rules know beside the caption."""

    lang: str
    """Its language, as the file says."""
    image: str | None = None
    """The name of its image."""
    lengths: Distribution | None = None
    """Of good captions in this language, in characters."""
    candidates: tuple[str, ...] = ()
    """Languages that a caption may be in."""
    model: LanguageModel | None = None
    """What identifies languages; None where none is installed."""


Rule = Callable[[str, TextContext], Fault | None]


def text_faults(caption: str, context: TextContext) -> list[Fault]:
    """The faults of a caption; where it is no caption at all, only the first of them."""
    caption = caption[:_LONGEST_READ]
    for rule in _BLOCKING:
        if (fault := rule(caption, context)) is not None:
            return [fault]
    return [fault for rule in _RULES if (fault := rule(caption, context)) is not None]


def _empty(caption: str, _: TextContext) -> Fault | None:
    if not caption.strip():
        return Fault(EMPTY, Verdict.fix, "there is no caption")
    if not any(character.isalpha() for character in caption):
        return Fault(EMPTY, Verdict.fix, "the caption has no words")
    return None


def _file_name(caption: str, context: TextContext) -> Fault | None:
    text = caption.strip()
    stem = PurePath(context.image).stem if context.image else None
    if _FILE.fullmatch(text) or _CAMERA.fullmatch(text) or (stem and text.casefold() == stem.casefold() and not text.isalpha()):
        return Fault(FILE_NAME, Verdict.fix, "the caption is the name of a file")
    return None


def _placeholder(caption: str, _: TextContext) -> Fault | None:
    text = " ".join(caption.casefold().replace("-", " ").split()).strip(" .:;!?…_()[]<>\"'*#")
    if _LOREM.search(caption) or text in _PLACEHOLDERS:
        return Fault(PLACEHOLDER, Verdict.fix, "the caption is a placeholder")
    return None


def _opening(caption: str, _: TextContext) -> Fault | None:
    match = _OPENING.match(caption.lstrip())
    if match is None:
        return None
    return Fault(
        PLACEHOLDER, Verdict.look, f"the caption begins with words that say nothing about the image ({match[0].strip()})"
    )


def _markup(caption: str, _: TextContext) -> Fault | None:
    match = _MARKUP.search(caption)
    return None if match is None else Fault(MARKUP, Verdict.fix, f"the caption contains markup ({match[0][:20]})")


def _encoding(caption: str, _: TextContext) -> Fault | None:
    repaired = _repaired(caption)
    if repaired is not None:
        return Fault(ENCODING, Verdict.fix, f"characters are damaged by a wrong encoding; it should read: {repaired[:80]}")
    if _DAMAGE.search(caption):
        return Fault(ENCODING, Verdict.fix, "characters are damaged by a wrong encoding")
    if match := _QUESTION_MARKS.search(caption):
        return Fault(ENCODING, Verdict.fix, f"letters were lost by a wrong encoding ({match[0]})")
    return None


def _repaired(caption: str) -> str | None:
    """The text before it was read in the wrong encoding, if that explains all of it."""
    if caption.isascii():
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = caption.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        return repaired if repaired != caption else None
    return None


def _repeated(caption: str, context: TextContext) -> Fault | None:
    words = [
        word for word in (without_punctuation(part.text).strip().casefold() for part in split(caption, context.lang)) if word
    ]
    phrase = _repeated_phrase(words)
    if phrase:
        return Fault(REPEATED, Verdict.fix, f"words are repeated ({' '.join(phrase * 2)[:40]})")
    match = _LONG_LETTER.search(caption) or _repeated_text(caption.casefold())
    if match is not None:
        return Fault(REPEATED, Verdict.fix, f"text is repeated ({match[0][:40]})")
    if len(words) >= _LEAST_WORDS and len(set(words)) < _LEAST_DISTINCT * len(words):
        return Fault(REPEATED, Verdict.fix, "most words are repetitions")
    if context.lang not in _REDUPLICATING:
        twice = next((first for first, second in pairwise(words) if first == second and first.isalpha()), None)
        if twice is not None:
            return Fault(REPEATED, Verdict.look, f"a word appears twice in a row ({twice} {twice})")
    return None


def _repeated_text(text: str) -> "re.Match[str] | None":
    """A piece of text that follows itself twice, in a script without spaces between words."""
    unspaced = _TSHEG in text or any(map(is_spaceless, text))
    return _PHRASE.search(_without_marks(text)) if unspaced else None


def _without_marks(text: str) -> str:
    """The text without vowel signs and other marks, which regular expressions do not count as parts of words."""
    return "".join(character for character in text if unicodedata.category(character) != "Mn")


def _repeated_phrase(words: list[str]) -> list[str]:
    """Words that follow one another again: a long phrase twice, a short one three times; empty if there are none."""
    for size in range(1, len(words) // 2 + 1):
        needed = _THRICE if size <= _LEAST_PHRASE else 2
        for start in range(len(words) - size * needed + 1):
            part = words[start : start + size]
            if words[start : start + size * needed] == part * needed and len("".join(part)) > 1:
                return part
    return []


def _cut_off(caption: str, context: TextContext) -> Fault | None:
    text = caption.rstrip()
    if text.endswith(_CUT_SIGNS):
        return Fault(CUT_OFF, Verdict.look, f"the caption ends with {text[-1]!r}, as if it were cut off")
    ends = _SPACELESS_ENDS.get(context.lang)
    if ends is not None:
        end = next((end for end in ends if text.endswith(end) and len(text) > len(end)), None)
        return None if end is None else Fault(CUT_OFF, Verdict.fix, f"the caption stops after {end!r}, as if it were cut off")
    words = text.split()
    if len(words) > 1 and words[-1].casefold() in _ENDS.get(context.lang, "").split():
        return Fault(CUT_OFF, Verdict.fix, f"the caption stops after {words[-1]!r}, as if it were cut off")
    if text.count("(") > text.count(")") or text.count("“") > text.count("”") or text.count("«") > text.count("»"):
        return Fault(CUT_OFF, Verdict.look, "a bracket or quotation mark is not closed, as if the caption were cut off")
    return None


def _length(caption: str, context: TextContext) -> Fault | None:
    text = caption.strip()
    name = language_names().get(context.lang, context.lang)
    # Where signs between syllables are punctuation, as in Tibetan, these are words too.
    one_word = len(without_punctuation(text).split()) == 1 and not any(map(is_spaceless, text))
    lengths = context.lengths
    if lengths is not None:
        short, long = _SHORT_FACTOR * lengths.quantile(_MOST_SHORT), _LONG_FACTOR * lengths.quantile(_MOST_LONG)
    else:
        short, long = float(_FEWEST_CHARACTERS), float(_LONGEST)
    if len(text) < short or one_word:
        what = "one word" if one_word else f"{len(text)} characters"
        return Fault(LENGTH, Verdict.look, f"the caption is very short for {name} ({what})")
    if len(text) > long:
        return Fault(LENGTH, Verdict.look, f"the caption is very long for {name} ({len(text):,} characters)")
    return None


def _script(caption: str, context: TextContext) -> Fault | None:
    script = script_of(caption)
    if script is None or script in scripts_of(context.lang):
        return None
    name = language_names().get(context.lang, context.lang)
    return Fault(SCRIPT, Verdict.fix, f"the caption is in {script} letters, and {name} is not")


def _language(caption: str, context: TextContext) -> Fault | None:
    """Only in a writing system of the language: others are said by the rule above."""
    if context.model is None or not context.model.knows(context.lang) or script_of(caption) not in scripts_of(context.lang):
        return None
    words, letters = len(caption.split()), sum(map(str.isalpha, caption))
    identified = identify_language(caption, [*context.candidates, context.lang], context.model)
    if identified.lang in (None, context.lang) or identified.probability < _LIKELY:
        return None
    names = language_names()
    reason = f"the caption seems to be in {names[str(identified.lang)]}, not in {names.get(context.lang, context.lang)}"
    enough = words >= _LANGUAGE_WORDS and letters >= _LANGUAGE_LETTERS
    return Fault(LANGUAGE, Verdict.fix if enough and identified.probability >= _SURE else Verdict.look, reason)


_BLOCKING: tuple[Rule, ...] = (_empty, _file_name, _placeholder)
_RULES: tuple[Rule, ...] = (_encoding, _markup, _opening, _script, _language, _repeated, _cut_off, _length)

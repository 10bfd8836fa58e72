"""The Penn Treebank tokeniser of the COCO caption evaluation, without Java.

The COCO evaluation runs Stanford CoreNLP 3.4.1 over the captions, lower-cases the tokens and drops a fixed list of
punctuation. That tokeniser is a longest-match lexer: at each position the rule that sees the most characters wins (what
it looks at behind its token counts), and the earlier rule wins a tie. `_RULES` describes the same language as regular
expressions; it was found by comparing with the Java program on hundreds of thousands of captions.

Quirks kept because published scores contain them: brackets become `-lrb-`, `-rrb-`, … and, being lower-cased before
the list of dropped tokens is applied, they stay; a number with a fraction ("1 1/2") is one token with a no-break space.
One thing is not kept: the Java program reads all captions as one text, so that a line end or form feed inside a caption
shifts every later caption by one, and a caption's last word can change with the first word of the next caption.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from caplens.text.tokenizer import Numbers, Tokenizer
from caplens.text.vocabulary import SEPARATOR, Vocabulary

PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
"""The tokens that the COCO evaluation drops. Its list has the brackets in upper case, so none of them is dropped."""

_MARKS = "".join(chr(c) for c in range(0x300, 0xF00) if unicodedata.category(chr(c)) in ("Mn", "Mc"))
_NOT_LETTERS = "\u00aa\u00b2-\u00ba\u00bc-\u00be\u2070-\u208e\u2150-\u218b\u2460-\u24ff\u2776-\u2793"
_LETTER = rf"(?:[^\W\d_{_NOT_LETTERS}]|[\u00ad{_MARKS}]|&[aeiou](?:acute|grave|uml);)"
_ALNUM = rf"(?:{_LETTER}|\d)"
_APOS = "(?:['\u2019\u0092]|&apos;)"
_QUOTE = rf"(?:{_APOS}|[`\u0091\u2018\u201b])"
_HYPHEN = "[-\u058a\u2010\u2011]"
_SYMBOL = (
    "[+%&~^|\\\\\u00a5-\u00a9\u00ac\u00ae-\u00b4\u00b6-\u00b9\u00d7\u00f7\u0387\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u060c\u061b"
    "\u061e\u066a\u066d\u0964\u0965\u0e3f\u0e4f\u2016\u2017\u201a\u201e-\u2023\u2030-\u2038\u203b\u203e-\u2042\u2044\u2070-\u207e"
    "\u2080-\u208e\u20a4\u2100-\u214f\u2155-\u215e\u2190-\u2bff\u3001\u3012\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
    "\uffe0\uffe1\uffe5\uffe6]"
)
"""Symbols that are tokens of their own. Any other sign that no rule knows (an emoji, say) is left out, as in Java."""

_TAG = r"<(?:[!?][a-z-][^>]*|/?[a-z][a-z0-9_:.-]*(?:\s[^<>]*)?/?)>"
_WORD = rf"{_LETTER}{_ALNUM}*(?:[.!?]{_LETTER}{_ALNUM}*)*"
_CLITIC = rf"{_APOS}(?:[msd]|re|ve|ll)"
_NOT = rf"n{_APOS}t"
_NUM = r"(?:\d*(?:[.:,\u00ad\u066b\u066c]\d+)+|\d+)"
_ACRONYM = r"(?:[a-z](?:\.[a-z])+|(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R))"

# Abbreviations that keep their period; those in (?-i:…) only in this spelling, because they are words otherwise.
_ABBREVIATION = (
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thu|Thurs|Fri"
    r"|Ala|Ariz|Calif|Colo|Conn|Ct|Dak|Fla|Ga|Ind|Kans?|Ky|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Penn|Tenn|Va|Vt|Wisc?|Wyo"
    r"|(?-i:Az)|(?-i:A)rk|(?-i:D)el|(?-i:I)ll|(?-i:L)a|(?-i:M)ass|(?-i:M)iss|(?-i:O)re|(?-i:P)a|(?-i:T)ex|(?-i:W)ash"
    r"|Inc|Cos?|Corp|Pp?t[ye]s?|Ltd|Plc|Rt|Bancorp|Bhd|Assn|Univ|Intl|Sys|Tel|Est|Ext|Sq|Jr|Sr|Bros"
    r"|(?:Ed|Ph)\.D|Esq|etc|al|seq|Bldg)\."
)
_TITLE = (
    r"(?:Mrs?|Ms|(?-i:M)iss|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Messrs|Govs?|Adm|Rev|Maj|Sgt|Cpl|Pvt|Capt|Ste?"
    r"|Ave|Pres|Lieut|Hon|Brig|Co?mdr|Pfc|Spc|Supts?|Det|Mt|Ft|Adj|Adv|Asst|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc"
    rf"|{_ACRONYM}|[a-z]|Alex|Invt|Elec|Natl|M[ft]g|Dept|Blvd|Rd|Wm|Jos|Cie|cf|TREAS|Ph)\."
)
_BEFORE_NUMBER = r"(?:ca|figs?|prop|nos?|art|bldg|pp|op)\."
_SENTENCE_OPENER = (
    r"(?-i:A|About|According|Additionally|After|An|As|At|But|Earlier|He|Her|Here|However|If|In|It|Last|Many|More|Mrs?\."
    r"|Ms\.|Now|Once|One|Other|Our|She|Since|So|Some|Such|That|The|Their|Then|There|These|They|This|We|When|While"
    r"|What|Yet|You)"
)

_FILE_TYPE = (
    "(?:bat|bmp|cgi|class|cpp|c|dll|docx?|exe|gif|gz|html?|h|jar|java|jpe?g|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar|txt"
    "|wav|xml|x|zip)"
)
_URL_CHAR = r"[^\s\"<>|(){}]"
_URL_LAST = r"[^\s\"<>|.!?(),;:{}-]"
_HOST_CHAR = r"[^\s\"`'<>|.!?(){},-]"
_HOST_PART = r"[^\s\"`'<>|.!?(),\-{}$]"
_PATH = rf"(?:/{_URL_CHAR}*{_URL_LAST})?"

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
_CURRENCIES = {"\u00a2": "cents", "\u00a3": "#", "\u00a4": "$", "\u0080": "$", "\u20a0": "$", "\u20ac": "$"}
_ROUND_BRACKETS = str.maketrans({"(": "-lrb-", ")": "-rrb-"})


def _plain(token: str) -> str:
    return token.replace("\u00ad", "")


def _straight(token: str) -> str:
    return re.sub(_APOS, "'", token)


def _spaces_joined(token: str) -> str:
    return token.replace(" ", "\u00a0")


def _brackets_named(token: str) -> str:
    return token.translate(_ROUND_BRACKETS)


def _constant(text: str) -> Callable[[str], str]:
    return lambda _: text


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    """Group 1 is the token, group 2 what the rule also wants to see behind it."""
    spell: Callable[[str], str]
    give_back: int = 0
    """How many characters of the match are left for the next token ("gon|na")."""


def _rule(token: str, behind: str = "", spell: Callable[[str], str] = _plain, give_back: int = 0) -> _Rule:
    return _Rule(re.compile(rf"({token})(?=({behind}))", re.IGNORECASE), spell, give_back)


_TWO_WORDS = frozenset({"cannot", "gonna", "gotta", "lemme", "gimme", "wanna"})
_RULES = [
    _rule(rf"cannot|{_APOS}twas", give_back=3),
    _rule(rf"{_APOS}tis|gonna|gotta|lemme|gimme|wanna", give_back=2),
    _rule(_TAG, spell=_spaces_joined),
    _rule("&(?:MD|[mn]dash);|[\u2013-\u2015\u0096\u0097]", spell=_constant("--")),
    _rule("&amp;", spell=_constant("&")),
    _rule("&nbsp;", spell=_constant("")),
    _rule("&(?:HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);"),
    _rule(_WORD, _CLITIC),
    _rule("[a-z\u00ad]*[a-mo-z]\u00ad*", _NOT),
    _rule(_WORD),
    _rule(rf"{_APOS}n{_APOS}"),
    _rule(rf"{_APOS}n", "[^a-z.]"),
    _rule(rf"[ldj]{_APOS}|(?:Dunkin|somethin|ol){_APOS}|{_APOS}(?:em|till?|cause|[2-9]0s)"),
    _rule(rf"(?-i:[A-HJ-XZn]{_QUOTE}{_LETTER}{{2}}|{_LETTER}+[aeiouyAEIOUY]{_QUOTE}[aeiouA-Z]){_LETTER}*"),
    _rule(
        rf"cont{_APOS}d\.?|{_APOS}twixt|nor{_APOS}easter|c{_APOS}mon|e{_APOS}er|s{_APOS}mores|ev{_APOS}ry|li{_APOS}l|nat{_APOS}l|(?-i:O){_QUOTE}o"
    ),
    _rule(rf"y{_APOS}", "[a-z]"),
    _rule(rf"(?:ftp|svn|svn\+ssh|https?|mailto)://{_URL_CHAR}+{_URL_LAST}"),
    _rule(rf"(?:www\.(?:{_HOST_CHAR}+\.)+[a-z]{{2,4}}|(?:{_HOST_PART}+\.)+(?:com|net|org|edu)){_PATH}"),
    _rule(r"<?[a-z0-9][^\s\"<>|(){}\u00a0]*@(?:[^\s\"<>|(){}.\u00a0]+\.)*[^\s\"<>|(){}.\u00a0]+>?"),
    _rule(r"@[a-z_][a-z_0-9]*|#[a-z]+"),
    _rule(rf"{_CLITIC}|{_NOT}", r"[^a-z]", spell=_straight),
    _rule(r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}"),
    _rule(rf"[-+]?{_NUM}"),
    _rule(r"(?:\d{1,4}[- \u00a0])?\d{1,4}(?:\\?/|\u2044)\d{1,4}", spell=_spaces_joined),
    _rule("[\u00bc-\u00be\u2153\u2154]", spell=_FRACTIONS.__getitem__),
    _rule(r"-(?:RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S&P-500|S&Ls|Cap'n|c'est"),
    _rule(r"[a-z0-9]+(?:-[a-z]+){0,2}(?:\\?/[a-z0-9]+(?:-[a-z]+){0,2}){1,2}"),
    _rule(r"(?-i:[A-Z]*\$)|#"),
    _rule("[\u00a2-\u00a4\u0080\u20a0\u20ac]", spell=_CURRENCIES.__getitem__),
    _rule(r"[a-z]\.", rf"\s+(?:{_SENTENCE_OPENER}|{_TAG})\s", give_back=1),
    _rule(_BEFORE_NUMBER, r"\s?\d"),
    _rule(_ABBREVIATION, r"(?s:..)"),
    _rule(_ABBREVIATION),
    _rule(_TITLE + "s?"),
    _rule(r"vs\."),
    _rule(rf"{_APOS}[0-9][0-9]", r"\s"),
    _rule(rf"{_ALNUM}+\.{_FILE_TYPE}", r"\s|[.?!,]"),
    _rule(rf"{_WORD}\.", "[,;:\u3001]"),
    _rule(
        r"(?:\([0-9]{2,3}\)[ \u00a0]?|(?:\+\+?)?(?:[0-9]{2,4}[- \u00a0])?[0-9]{2,4}[- \u00a0])[0-9]{3,4}[- \u00a0]?[0-9]{3,5}"
        r"|(?:\+\+?)?[0-9]{2,4}\.[0-9]{2,4}\.[0-9]{3,4}(?:\.[0-9]{3,5})?",
        spell=lambda t: _brackets_named(_spaces_joined(t)),
    ),
    _rule(r"\"|&quot;|[`'\u0091\u0092\u2018\u2019]'", spell=_constant("''")),
    _rule(r"(?-i:[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]])", "[^a-z0-9]", spell=_brackets_named),
    _rule(r"(?-i:[\^x=~<>]\.\[\^x=~<>]|[-^x=~<>']_[-^x=~<>']|\([-^x=~<>'][_.]?[-^x=~<>']\))", spell=_brackets_named),
    _rule("<|&lt;", spell=_constant("<")),
    _rule(">|&gt;", spell=_constant(">")),
    _rule("<<|>>"),
    _rule(r"[(){}\[\]]", spell=_BRACKETS.__getitem__),
    _rule("-+", spell=lambda t: "--" if 3 <= len(t) <= 4 else t),
    _rule("\\.{3,}|[\u0085\u2026]|\\.[ \u00a0](?:\\.[ \u00a0])+\\.", spell=_constant("...")),
    _rule(r"@+|#+|_+"),
    _rule(r"\*+|(?:\\\*){1,3}"),
    _rule("[,;:\u3001]"),
    _rule("[?!]+"),
    _rule("[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u07fa\u3002]"),
    _rule("=|/"),
    _rule(rf"(?:[dol]{_QUOTE}{_ALNUM})?(?:{_ALNUM}+|[-+]?{_NUM})(?:{_HYPHEN}(?:[dol]{_QUOTE}{_ALNUM})?(?:{_ALNUM}+|{_NUM}))*"),
    _rule(r"(?-i:[A-Z]+(?:(?:[+&]|&amp;)[A-Z]+)+)", spell=lambda t: t.replace("&amp;", "&")),
    _rule(rf"[a-z0-9][a-z0-9.,]*(?:[-_](?:{_ACRONYM}\.|[a-z0-9]+))+"),
    _rule(r"c\+\+|[cf]#"),
    _rule(rf"{_APOS}|[`\u2018\u2019\u201b-\u201d\u0091-\u0094\u2039\u203a\u00ab\u00bb]{{1,2}}", spell=_constant("'")),
    _rule(_SYMBOL),
]


# What may make a token depend on more than the run of visible characters it stands in: a tag, a number in parts, spaced
# dots, an abbreviation before a number, a single letter with a period before a capital. (It starts with the one
# character that is looked for, because that is what the regular expression engine scans for fastest.)
_CROSSES_SPACE = re.compile(r"[\0<).\d](?:(?<=\0)|(?<=<)[a-zA-Z!?/]|(?<=[)\d])\s\(?\d|(?<=\.)\s[.\d]|(?<=\b[a-zA-Z]\.)\s+[A-Z<])")


_WINDOW = 256


def _longest(text: str, position: int, stop: int) -> tuple[_Rule, int] | None:
    """The rule that sees most of the text from `position` on, and where its token ends.

    Rules look no further than `stop`, so that a text without spaces takes time in proportion to its length; a match that
    reaches it is sought again without that limit.
    """
    seen, best, rule = position, None, None
    for candidate in _RULES:
        match = candidate.pattern.match(text, position, stop)
        if match and match.end(2) > seen:
            seen, best, rule = match.end(2), match, candidate
    if seen == stop < len(text):
        return _longest(text, position, len(text))
    return None if best is None or rule is None else (rule, best.end(1) - rule.give_back)


def lex(text: str) -> list[str]:
    """Every token of `text`, lower-cased, punctuation and all."""
    text += "\n"
    position, end, tokens = 0, len(text), []
    while position < end:
        found = None if text[position].isspace() else _longest(text, position, min(position + _WINDOW, end))
        if found is None:
            position += 1
            continue
        rule, stop = found
        tokens.append(rule.spell(text[position:stop]).lower())
        position = stop
    return [token for token in tokens if token]


# Runs whose tokens are plain to see: a word of ASCII letters, perhaps hyphenated, perhaps with a mark behind it.
_PLAIN = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)*)[.,;!?]?")
_KEEPS_PERIOD = re.compile(rf"{_ABBREVIATION}|{_TITLE}|{_BEFORE_NUMBER}|vs\.", re.IGNORECASE)


class _TokensOfRun(dict[str, tuple[str, ...]]):
    """Run of visible characters -> its tokens without punctuation. Captions repeat words, so each is lexed once."""

    _LIMIT = 1 << 18

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= self._LIMIT:
            self.clear()
        plain = _PLAIN.fullmatch(run)
        if run == SEPARATOR:
            tokens: tuple[str, ...] = (run,)
        elif plain and plain[1].lower() not in _TWO_WORDS and not (run[-1] == "." and _KEEPS_PERIOD.match(run)):
            tokens = (plain[1].lower(),)
        else:
            tokens = tuple(token for token in lex(run) if token not in PUNCTUATION)
        self[run] = tokens
        return tokens


class PTBTokenizer(Tokenizer):
    """Penn Treebank tokens as in the COCO caption evaluation."""

    name = "ptb"

    def __init__(self, lang: str = "en") -> None:
        super().__init__(lang)
        self._tokens_of = _TokensOfRun()

    def __call__(self, text: str) -> list[str]:
        if _CROSSES_SPACE.search(text):
            return [token for token in lex(text) if token not in PUNCTUATION]
        return self._tokens_of_runs(text)

    def numbered(self, texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Numbers, Numbers]:
        numbers, counts = [], []
        for crossing, group in groupby(texts, lambda text: _CROSSES_SPACE.search(text) is not None):
            alike = list(group)
            found = super().numbered(alike, vocabulary) if crossing else self._numbered_runs(alike, vocabulary)
            numbers.append(found[0])
            counts.append(found[1])
        empty = np.empty(0, np.int32)
        return np.concatenate([empty, *numbers]), np.concatenate([empty, *counts])

    def _numbered_runs(self, texts: list[str], vocabulary: Vocabulary) -> tuple[Numbers, Numbers]:
        """Many texts in one go, which spares most of the time that Python takes for each of them."""
        tokens = self._tokens_of_runs(f" {SEPARATOR} ".join(texts))
        numbers = np.fromiter(map(vocabulary.__getitem__, tokens), np.int32, len(tokens))
        separators = np.flatnonzero(numbers < 0)
        bounds = np.concatenate([[-1], separators, [len(numbers)]])
        return numbers[numbers >= 0], (np.diff(bounds) - 1).astype(np.int32)

    def _tokens_of_runs(self, text: str) -> list[str]:
        return list(chain.from_iterable(map(self._tokens_of.__getitem__, text.split())))

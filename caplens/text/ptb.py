"""The `ptb` tokenizer: the Penn Treebank tokenizer of the COCO caption evaluation, without Java.

The COCO evaluation runs Stanford CoreNLP 3.4.1 over the captions, lower-cases the tokens and drops a fixed list of punctuation.
That tokenizer is a longest-match lexer: at each position the rule that matches the most characters wins (its lookahead counts),
and the earlier rule wins a tie. `_RULES` describes the same language as regular expressions. It was derived by comparison with
the Java program on hundreds of thousands of captions.

Quirks that published scores depend on are reproduced. Brackets become `-lrb-`, `-rrb-`, … and are not dropped, because they are
lower-cased before the list of dropped tokens is applied. A number with a fraction ("1 1/2") is one token with a no-break space.
One quirk is not reproduced: the Java program reads all captions as one text, so that a line end or form feed inside a caption
shifts every later caption by one, and a caption's last word can change with the first word of the next caption.
"""

import re
import unicodedata
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from caplens.text.tokenizer import TokenIds, Tokenizer
from caplens.text.vocabulary import SEPARATOR, SEPARATOR_ID, Vocabulary

PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
"""The tokens that the COCO evaluation drops. Its list has the brackets in upper case, so brackets are not dropped."""

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
"""Symbols that are tokens of their own. Any other character that no rule matches (such as an emoji) is dropped, as in Java."""

_TAG = r"<(?:[!?][a-z-][^>]*|/?[a-z][a-z0-9_:.-]*(?:\s[^<>]*)?/?)>"
_WORD = rf"{_LETTER}{_ALNUM}*(?:[.!?]{_LETTER}{_ALNUM}*)*"
_CLITIC = rf"{_APOS}(?:[msd]|re|ve|ll)"
_NOT = rf"n{_APOS}t"
_NUM = r"(?:\d*(?:[.:,\u00ad\u066b\u066c]\d+)+|\d+)"
_ACRONYM = r"(?:[a-z](?:\.[a-z])+|(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R))"

# Abbreviations that keep their period. Those in (?-i:…) are case-sensitive, because they are also ordinary words.
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


def _drop_soft_hyphens(token: str) -> str:
    return token.replace("\u00ad", "")


def _straighten_apostrophes(token: str) -> str:
    return re.sub(_APOS, "'", token)


def _join_spaces(token: str) -> str:
    return token.replace(" ", "\u00a0")


def _escape_brackets(token: str) -> str:
    return token.translate(_ROUND_BRACKETS)


def _constant(text: str) -> Callable[[str], str]:
    return lambda _: text


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    """Group 1 is the token, group 2 the lookahead."""
    rewrite: Callable[[str], str]
    pushback: int = 0
    """How many characters of the match are left for the next token ("gon|na")."""


def _rule(token: str, lookahead: str = "", rewrite: Callable[[str], str] = _drop_soft_hyphens, pushback: int = 0) -> _Rule:
    return _Rule(re.compile(rf"({token})(?=({lookahead}))", re.IGNORECASE), rewrite, pushback)


_SPLIT_WORDS = frozenset({"cannot", "gonna", "gotta", "lemme", "gimme", "wanna"})
_RULES = [
    _rule(rf"cannot|{_APOS}twas", pushback=3),
    _rule(rf"{_APOS}tis|gonna|gotta|lemme|gimme|wanna", pushback=2),
    _rule(_TAG, rewrite=_join_spaces),
    _rule("&(?:MD|[mn]dash);|[\u2013-\u2015\u0096\u0097]", rewrite=_constant("--")),
    _rule("&amp;", rewrite=_constant("&")),
    _rule("&nbsp;", rewrite=_constant("")),
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
    _rule(rf"{_CLITIC}|{_NOT}", r"[^a-z]", rewrite=_straighten_apostrophes),
    _rule(r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}"),
    _rule(rf"[-+]?{_NUM}"),
    _rule(r"(?:\d{1,4}[- \u00a0])?\d{1,4}(?:\\?/|\u2044)\d{1,4}", rewrite=_join_spaces),
    _rule("[\u00bc-\u00be\u2153\u2154]", rewrite=_FRACTIONS.__getitem__),
    _rule(r"-(?:RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S&P-500|S&Ls|Cap'n|c'est"),
    _rule(r"[a-z0-9]+(?:-[a-z]+){0,2}(?:\\?/[a-z0-9]+(?:-[a-z]+){0,2}){1,2}"),
    _rule(r"(?-i:[A-Z]*\$)|#"),
    _rule("[\u00a2-\u00a4\u0080\u20a0\u20ac]", rewrite=_CURRENCIES.__getitem__),
    _rule(r"[a-z]\.", rf"\s+(?:{_SENTENCE_OPENER}|{_TAG})\s", pushback=1),
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
        rewrite=lambda t: _escape_brackets(_join_spaces(t)),
    ),
    _rule(r"\"|&quot;|[`'\u0091\u0092\u2018\u2019]'", rewrite=_constant("''")),
    _rule(r"(?-i:[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]])", "[^a-z0-9]", rewrite=_escape_brackets),
    _rule(r"(?-i:[\^x=~<>]\.\[\^x=~<>]|[-^x=~<>']_[-^x=~<>']|\([-^x=~<>'][_.]?[-^x=~<>']\))", rewrite=_escape_brackets),
    _rule("<|&lt;", rewrite=_constant("<")),
    _rule(">|&gt;", rewrite=_constant(">")),
    _rule("<<|>>"),
    _rule(r"[(){}\[\]]", rewrite=_BRACKETS.__getitem__),
    _rule("-+", rewrite=lambda t: "--" if 3 <= len(t) <= 4 else t),
    _rule("\\.{3,}|[\u0085\u2026]|\\.[ \u00a0](?:\\.[ \u00a0])+\\.", rewrite=_constant("...")),
    _rule(r"@+|#+|_+"),
    _rule(r"\*+|(?:\\\*){1,3}"),
    _rule("[,;:\u3001]"),
    _rule("[?!]+"),
    _rule("[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u07fa\u3002]"),
    _rule("=|/"),
    _rule(rf"(?:[dol]{_QUOTE}{_ALNUM})?(?:{_ALNUM}+|[-+]?{_NUM})(?:{_HYPHEN}(?:[dol]{_QUOTE}{_ALNUM})?(?:{_ALNUM}+|{_NUM}))*"),
    _rule(r"(?-i:[A-Z]+(?:(?:[+&]|&amp;)[A-Z]+)+)", rewrite=lambda t: t.replace("&amp;", "&")),
    _rule(rf"[a-z0-9][a-z0-9.,]*(?:[-_](?:{_ACRONYM}\.|[a-z0-9]+))+"),
    _rule(r"c\+\+|[cf]#"),
    _rule(rf"{_APOS}|[`\u2018\u2019\u201b-\u201d\u0091-\u0094\u2039\u203a\u00ab\u00bb]{{1,2}}", rewrite=_constant("'")),
    _rule(_SYMBOL),
]


# Matches texts in which a token can depend on more than its own run of non-space characters: a tag, a number in parts, spaced
# dots, an abbreviation before a number, a single letter with a period before a capital. The pattern begins with a character
# class and uses lookbehind, because the regular expression engine scans for a character class fastest.
_CROSSES_SPACE = re.compile(r"[\0<).\d](?:(?<=\0)|(?<=<)[a-zA-Z!?/]|(?<=[)\d])\s\(?\d|(?<=\.)\s[.\d]|(?<=\b[a-zA-Z]\.)\s+[A-Z<])")


_BETWEEN = "\x01"
"""Between texts that are searched together: no match reaches over it."""
_WINDOW = 256


def _crossing_space(texts: Sequence[str]) -> list[int]:
    """The places of texts in which a token can depend on more than its own run, ascending."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + len(_BETWEEN))
    starts = [match.start() for match in _CROSSES_SPACE.finditer(_BETWEEN.join(texts))]
    return sorted(set(np.searchsorted(ends, starts, side="right").tolist()))


def _longest_match(text: str, position: int, stop: int) -> tuple[_Rule, int] | None:
    """The rule with the longest match at `position`, and where its token ends.

    Rules look no further than `stop`, so that the time for a text without spaces is linear in its length. If the longest match
    reaches `stop`, the search is repeated without that limit.
    """
    reach, best, rule = position, None, None
    for candidate in _RULES:
        match = candidate.pattern.match(text, position, stop)
        if match and match.end(2) > reach:
            reach, best, rule = match.end(2), match, candidate
    if reach == stop < len(text):
        return _longest_match(text, position, len(text))
    return None if best is None or rule is None else (rule, best.end(1) - rule.pushback)


def lex(text: str) -> list[str]:
    """All tokens of `text` in lower case, punctuation included."""
    text += "\n"
    position, end, tokens = 0, len(text), []
    while position < end:
        match = None if text[position].isspace() else _longest_match(text, position, min(position + _WINDOW, end))
        if match is None:
            position += 1
            continue
        rule, stop = match
        tokens.append(rule.rewrite(text[position:stop]).lower())
        position = stop
    return [token for token in tokens if token]


# Runs that need no lexing: a word of ASCII letters, optionally hyphenated, optionally followed by a punctuation mark.
_SIMPLE_WORD = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)*)[.,;!?]?")
_KEEPS_PERIOD = re.compile(rf"{_ABBREVIATION}|{_TITLE}|{_BEFORE_NUMBER}|vs\.", re.IGNORECASE)


_MOST_RUNS = 1 << 18


class _TokensOfRun(dict[str, tuple[str, ...]]):
    """Run of non-space characters -> its tokens without punctuation. A cache: captions repeat words, so each is lexed once."""

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= _MOST_RUNS:
            self.clear()
        simple = _SIMPLE_WORD.fullmatch(run)
        if run == SEPARATOR:
            tokens: tuple[str, ...] = (run,)
        elif simple and simple[1].lower() not in _SPLIT_WORDS and not (run[-1] == "." and _KEEPS_PERIOD.match(run)):
            tokens = (simple[1].lower(),)
        else:
            tokens = tuple(token for token in lex(run) if token not in PUNCTUATION)
        self[run] = tokens
        return tokens


class _NumberedRuns(dict[str, int]):
    """Run of non-space characters -> the id of its token; of none or several, a negative number by which they are found."""

    def __init__(self, tokens_of: _TokensOfRun, vocabulary: Vocabulary) -> None:
        self._tokens_of, self._vocabulary = tokens_of, vocabulary
        self._other_ids, self._other_starts = array("i"), array("q", [0])
        """The ids of runs with no token or with several, and where those of each begin."""

    def __missing__(self, run: str) -> int:
        ids = [self._vocabulary[token] for token in self._tokens_of[run]]
        if len(ids) == 1:
            number = ids[0]
        else:
            self._other_ids.extend(ids)
            self._other_starts.append(len(self._other_ids))
            number = SEPARATOR_ID + 1 - len(self._other_starts)
        self[run] = number
        return number

    def expanded(self, numbers: TokenIds) -> tuple[TokenIds, TokenIds]:
        """The token ids of runs with these numbers, and how many tokens there are between separators."""
        starts = np.array(self._other_starts)
        others = numbers < SEPARATOR_ID
        which = SEPARATOR_ID - 1 - numbers[others]
        counts = (numbers >= 0).astype(np.int64)
        counts[others] = starts[which + 1] - starts[which]
        ends = np.cumsum(counts)
        ids = np.repeat(numbers, counts)
        # Token k of a run is k after the first of the run in both arrays.
        within = np.arange(counts[others].sum()) - np.repeat(np.cumsum(counts[others]) - counts[others], counts[others])
        ids[np.repeat(others, counts)] = np.array(self._other_ids, np.int32)[np.repeat(starts[which], counts[others]) + within]
        before = np.concatenate([[0], ends[numbers == SEPARATOR_ID], ends[-1:] if len(ends) else [0]])
        if len(self) > _MOST_RUNS:
            self.clear()
            self._other_ids, self._other_starts = array("i"), array("q", [0])
        return ids, np.diff(before).astype(np.int32)


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

    def token_ids(self, texts: Sequence[str], vocabulary: Vocabulary) -> tuple[TokenIds, TokenIds]:
        id_arrays, count_arrays, start = [], [], 0
        for place in [*_crossing_space(texts), len(texts)]:
            parts = [self._numbered_runs(texts[start:place], vocabulary)] if start < place else []
            parts += [super().token_ids(texts[place : place + 1], vocabulary)] if place < len(texts) else []
            start = place + 1
            id_arrays += [ids for ids, _ in parts]
            count_arrays += [counts for _, counts in parts]
        empty = np.empty(0, np.int32)
        return np.concatenate([empty, *id_arrays]), np.concatenate([empty, *count_arrays])

    def _numbered_runs(self, texts: Sequence[str], vocabulary: Vocabulary) -> tuple[TokenIds, TokenIds]:
        """The token ids of many texts in one pass, with one look-up for each run and no Python object for each token."""
        numbers: _NumberedRuns = vocabulary.remembered(self.name, lambda: _NumberedRuns(self._tokens_of, vocabulary))
        runs = f" {SEPARATOR} ".join(texts).split()
        return numbers.expanded(np.fromiter(map(numbers.__getitem__, runs), np.int32, len(runs)))

    def _tokens_of_runs(self, text: str) -> list[str]:
        return list(chain.from_iterable(map(self._tokens_of.__getitem__, text.split())))

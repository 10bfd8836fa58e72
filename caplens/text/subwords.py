"""Sub-words of any script: the most likely pieces of each word, and bytes for what no piece covers.

Kudo's unigram model (2018), as sentencepiece has it, but a word at a time: pieces never reach across spaces, so the best pieces
of a text are those of its words, and a word is looked up when it comes again. Han characters are words of their own.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from caplens.data.files import Place, Source, replacing
from caplens.errors import InputError
from caplens.text.normalize import fold, without_punctuation

PADDING, UNKNOWN, END = "<pad>", "<unk>", "</s>"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
SPECIAL = (PADDING, UNKNOWN, END, *BYTES)
"""The first pieces of every vocabulary. `<unk>` is there because sentencepiece needs it; no text has it."""
WORD_START = "▁"
_HAN = re.compile("([\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
_DOTTED_I = "i\u0307"
"""What Turkish İ becomes in lower case."""
_UNKNOWN_PENALTY = 10.0
"""How much less likely than the least likely piece an unknown character is; sentencepiece's value."""
_REMEMBERED_WORDS = 200_000


def words_of(text: str) -> list[str]:
    """Words in lower case without punctuation, each with the mark of a word's start."""
    plain = without_punctuation(fold(text, "").replace(_DOTTED_I, "i"))
    return [WORD_START + word for word in _HAN.sub(r" \1 ", plain).split()]


class Subwords:
    """A vocabulary of pieces, each with the logarithm of how likely it is."""

    padding, end = SPECIAL.index(PADDING), SPECIAL.index(END)

    def __init__(self, pieces: Sequence[tuple[str, float]]) -> None:
        self.pieces = list(pieces)
        names = [piece for piece, _ in self.pieces]
        if tuple(names[: len(SPECIAL)]) != SPECIAL or len(set(names)) < len(names):
            raise InputError("a vocabulary begins with the special pieces, and has each piece once.")
        self._known = {piece: (number, score) for number, (piece, score) in enumerate(self.pieces) if number >= len(SPECIAL)}
        self._first_byte = SPECIAL.index(BYTES[0])
        self._longest = max(map(len, self._known), default=1)
        self._unknown_score = min((score for _, score in self._known.values()), default=0.0) - _UNKNOWN_PENALTY
        self._words: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces, without an end marker."""
        numbers: list[int] = []
        for word in words_of(text):
            known = self._words.get(word)
            if known is None:
                if len(self._words) >= _REMEMBERED_WORDS:
                    self._words.clear()
                known = self._words[word] = self._best(word)
            numbers += known
        return numbers

    def _best(self, word: str) -> list[int]:
        """The most likely pieces of one word (Viterbi); a start mark that stands alone says nothing and is left out."""
        size = len(word)
        scores = [0.0] + [float("-inf")] * size
        steps: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        for start in range(size):
            here = scores[start]
            for end in range(start + 1, min(size, start + self._longest) + 1):
                found = self._known.get(word[start:end])
                if found is not None and here + found[1] > scores[end]:
                    scores[end], steps[end] = here + found[1], (start, found[0])
            if here + self._unknown_score > scores[start + 1]:
                scores[start + 1], steps[start + 1] = here + self._unknown_score, (start, None)
        numbers: list[int] = []
        end = size
        while end:
            start, number = steps[end]
            if number is None:
                numbers += reversed([self._first_byte + byte for byte in word[start:end].encode()])
            elif word[start:end] != WORD_START:
                numbers.append(number)
            end = start
        return numbers[::-1]

    @cached_property
    def characters(self) -> frozenset[str]:
        """Every character that some piece has."""
        return frozenset(character for piece in self._known for character in piece)

    def unknown_letter_share(self, text: str) -> float:
        """How many of a text's letters, from 0 to 1, are in no piece: the vocabulary was learned without them."""
        letters = [letter for word in words_of(text) for letter in word[1:] if unicodedata.category(letter)[0] == "L"]
        return sum(letter not in self.characters for letter in letters) / len(letters) if letters else 0.0

    def save(self, path: Path) -> None:
        with replacing(path) as temporary:
            temporary.write_text("".join(f"{piece}\t{score:.6g}\n" for piece, score in self.pieces), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        with Source(path) as source:
            return cls([_parsed(line, Place(path, number)) for number, line in source.lines()])


def _parsed(line: str, place: Place) -> tuple[str, float]:
    piece, tab, score = line.rstrip("\n").partition("\t")
    try:
        if not tab:
            raise ValueError
        return piece, float(score)
    except ValueError:
        raise InputError(f"{place}: a piece, a tab and a number are expected. Get the model again.") from None


def word_lines(texts: Iterable[str]) -> Iterable[str]:
    """Texts as a vocabulary is learned from them: their words, parted by spaces."""
    return (" ".join(word.removeprefix(WORD_START) for word in words_of(text)) for text in texts)

"""Subword segmentation for any script: the most likely pieces of each word, with a fallback to bytes.

This is the unigram model of Kudo (2018), as in sentencepiece, applied to one word at a time. Pieces never span spaces, so the
best segmentation of a text is that of its words, and the segmentation of a word can be cached. Each Han character is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path

from caplens.data.files import Place, Source
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.text.normalize import fold, without_punctuation

PADDING, UNKNOWN, END = "<pad>", "<unk>", "</s>"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
SPECIAL = (PADDING, UNKNOWN, END, *BYTES)
"""The first pieces of every vocabulary. `<unk>` is included because sentencepiece needs it; no text is encoded with it."""
WORD_START = "▁"
_HAN = re.compile("([\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
_DOTTED_I = "i\u0307"
"""Turkish İ in lower case."""
_UNKNOWN_PENALTY = 10.0
"""How far the score of an unknown character lies below that of the least likely piece; sentencepiece's value."""
_MAX_CACHED_WORDS = 200_000
_MOST_PIECES = 1_000_000


def words_of(text: str) -> list[str]:
    """The words of a text in lower case without punctuation, each prefixed with `WORD_START`."""
    normalized = without_punctuation(fold(text, "").replace(_DOTTED_I, "i"))
    return [WORD_START + word for word in _HAN.sub(r" \1 ", normalized).split()]


class Subwords:
    """A unigram subword model: pieces with their log probabilities.

    Parameters
    ----------
    pieces
        (piece, log probability), in the order of their ids. The first ones are `SPECIAL`.
    """

    padding, end = SPECIAL.index(PADDING), SPECIAL.index(END)

    def __init__(self, pieces: Sequence[tuple[str, float]]) -> None:
        self.pieces = list(pieces)
        names = [piece for piece, _ in self.pieces]
        if tuple(names[: len(SPECIAL)]) != SPECIAL or len(set(names)) < len(names):
            raise InputError("the vocabulary must begin with the special pieces and contain each piece once.")
        self._lookup = {
            piece: (piece_id, score) for piece_id, (piece, score) in enumerate(self.pieces) if piece_id >= len(SPECIAL)
        }
        self._first_byte = SPECIAL.index(BYTES[0])
        self._max_length = max(map(len, self._lookup), default=1)
        self._unknown_score = min((score for _, score in self._lookup.values()), default=0.0) - _UNKNOWN_PENALTY
        self._cache: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """The piece ids of a text, without an end marker."""
        piece_ids: list[int] = []
        for word in words_of(text):
            word_ids = self._cache.get(word)
            if word_ids is None:
                if len(self._cache) >= _MAX_CACHED_WORDS:
                    self._cache.clear()
                word_ids = self._cache[word] = self._encode_word(word)
            piece_ids += word_ids
        return piece_ids

    def spell(self, text: str) -> list[int]:
        """The piece ids of a text with those that only start a word, so that `decode` gives its words again."""
        return [piece_id for word in words_of(text) for piece_id in self._spell_word(word)]

    def decode(self, piece_ids: Iterable[int]) -> str:
        """The words that `spell` turned into piece ids, with spaces between them. Ids that stand for no text are skipped."""
        parts: list[str] = []
        for is_byte, group in groupby(piece_ids, lambda piece_id: 0 <= piece_id - self._first_byte < len(BYTES)):
            if is_byte:
                parts.append(bytes(piece_id - self._first_byte for piece_id in group).decode("utf-8", "ignore"))
            else:
                parts += [self.pieces[piece_id][0] for piece_id in group if piece_id >= len(SPECIAL)]
        return " ".join("".join(parts).replace(WORD_START, " ").split())

    def _encode_word(self, word: str) -> list[int]:
        """The pieces of one word. A piece that is only `WORD_START` carries no meaning and is dropped."""
        return [piece_id for piece_id in self._spell_word(word) if self.pieces[piece_id][0] != WORD_START]

    def _spell_word(self, word: str) -> list[int]:
        """The most likely pieces of one word (Viterbi)."""
        size = len(word)
        scores = [0.0] + [float("-inf")] * size
        steps: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        for start in range(size):
            prefix_score = scores[start]
            for end in range(start + 1, min(size, start + self._max_length) + 1):
                piece = self._lookup.get(word[start:end])
                if piece is not None and prefix_score + piece[1] > scores[end]:
                    scores[end], steps[end] = prefix_score + piece[1], (start, piece[0])
            if prefix_score + self._unknown_score > scores[start + 1]:
                scores[start + 1], steps[start + 1] = prefix_score + self._unknown_score, (start, None)
        piece_ids: list[int] = []
        end = size
        while end:
            start, piece_id = steps[end]
            if piece_id is None:
                piece_ids += reversed([self._first_byte + byte for byte in word[start:end].encode()])
            else:
                piece_ids.append(piece_id)
            end = start
        return piece_ids[::-1]

    @cached_property
    def characters(self) -> frozenset[str]:
        """All characters that occur in pieces."""
        return frozenset(character for piece in self._lookup for character in piece)

    def unknown_letter_share(self, text: str) -> float:
        """The share (0 to 1) of a text's letters that occur in no piece, because the vocabulary was learned without them."""
        letters = [letter for word in words_of(text) for letter in word[1:] if unicodedata.category(letter)[0] == "L"]
        return sum(letter not in self.characters for letter in letters) / len(letters) if letters else 0.0

    def save(self, path: Path) -> None:
        """Write one line for each piece: the piece, a tab, its log probability."""
        with replacing(path) as temporary:
            temporary.write_text("".join(f"{piece}\t{score:.6g}\n" for piece, score in self.pieces), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read a file that `save` wrote."""
        with Source(path) as source:
            lines = islice(source.lines(), _MOST_PIECES + 1)
            pieces = [_parse_piece(line, Place(path, number)) for number, line in lines]
        if len(pieces) > _MOST_PIECES:
            raise InputError(f"{path}: a vocabulary has at most {_MOST_PIECES:,} pieces.")
        return cls(pieces)


def _parse_piece(line: str, place: Place) -> tuple[str, float]:
    piece, tab, score = line.rstrip("\n").partition("\t")
    try:
        if not tab:
            raise ValueError
        return piece, float(score)
    except ValueError:
        raise InputError(f"{place}: expected a piece, a tab and a number. Get the model again.") from None


def word_lines(texts: Iterable[str]) -> Iterable[str]:
    """The texts as training input for a vocabulary: their words, separated by spaces."""
    return (" ".join(word.removeprefix(WORD_START) for word in words_of(text)) for text in texts)

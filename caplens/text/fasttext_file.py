"""The layout of a model of fastText, checked before the library reads it: it takes what a damaged file says on trust.

A header, twelve settings, the dictionary, and two matrices, which are plain or quantised; little-endian.
"""

from os import PathLike
from pathlib import Path
from typing import IO

from caplens.data.files import open_regular
from caplens.errors import InputError

_MAGIC, _VERSIONS = 793712314, (11, 12)
_SETTINGS = ("dim", "ws", "epoch", "min_count", "neg", "word_ngrams", "loss", "model", "bucket", "minn", "maxn", "rate")
_LOSSES, _MODELS = range(1, 5), range(1, 4)
_MOST_ENTRIES, _LONGEST_WORD = 1 << 27, 1 << 16
_CENTROIDS = 256
"""Of each part of a quantised vector."""


class _Reader:
    """Numbers of a file in turn; an error where it ends."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._size = file, size

    def integer(self, width: int = 4) -> int:
        return int.from_bytes(self._exactly(width), "little", signed=True)

    def skip(self, count: int) -> None:
        if not 0 <= count <= self.left:
            raise ValueError("it is cut short")
        self._file.seek(count, 1)

    def word(self) -> bytes:
        """A text that ends with a zero byte."""
        word = bytearray()
        while (byte := self._exactly(1)) != b"\0":
            word += byte
            if len(word) > _LONGEST_WORD:
                raise ValueError("a word does not end")
        return bytes(word)

    @property
    def left(self) -> int:
        return self._size - self._file.tell()

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise ValueError("it is cut short")
        return data


def read_fasttext_labels(path: str | PathLike[str]) -> list[str]:
    """The labels of a model of fastText; an error if the file is not a complete one."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file of fastText.")
    try:
        with open_regular(Path(path)) as file:
            return _labels(_Reader(file, Path(path).stat().st_size))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: this is not a model of fastText, or it is damaged ({error}). Download it again.") from None


def _labels(reader: _Reader) -> list[str]:
    if reader.integer() != _MAGIC or reader.integer() not in _VERSIONS:
        raise ValueError("it begins with another mark")
    settings = _settings(reader)
    words, labels, pruned = _dictionary(reader)
    if not labels:
        raise ValueError("it has no labels")
    buckets = settings["bucket"] if pruned < 0 else pruned
    quantised = _flag(reader)
    _check_matrix(reader, words + buckets, settings["dim"], quantised=quantised)
    output_quantised = _flag(reader)
    _check_matrix(reader, len(labels), settings["dim"], quantised=quantised and output_quantised)
    if reader.left:
        raise ValueError("there is more in it than a model")
    return labels


def _settings(reader: _Reader) -> dict[str, int]:
    settings = {name: reader.integer() for name in _SETTINGS}
    reader.skip(8)
    if settings["loss"] not in _LOSSES or settings["model"] not in _MODELS or settings["dim"] < 1:
        raise ValueError("its settings cannot be")
    if min(settings[name] for name in ("bucket", "word_ngrams", "minn", "maxn")) < 0:
        raise ValueError("its settings cannot be")
    if not settings["bucket"] and (settings["word_ngrams"] > 1 or settings["maxn"] > 0):
        raise ValueError("it has n-grams, and no vectors of them")
    return settings


def _dictionary(reader: _Reader) -> tuple[int, list[str], int]:
    """How many words there are, the labels, and how many n-grams are kept; all where that is negative."""
    size, words, label_count = (reader.integer() for _ in range(3))
    _, pruned = reader.integer(8), reader.integer(8)
    if min(words, label_count) < 0 or size != words + label_count or not 0 < size <= _MOST_ENTRIES or pruned > _MOST_ENTRIES:
        raise ValueError("the sizes of its dictionary cannot be")
    labels = []
    for place in range(size):
        word = reader.word()
        if place >= words:
            labels.append(word.decode("utf-8", "replace"))
        reader.skip(8)
        # Words come first: labels are found by their places after them.
        if reader.integer(1) != (place >= words):
            raise ValueError("an entry of its dictionary is neither a word nor a label")
    _check_kept_ngrams(reader, pruned)
    return words, labels, pruned


def _check_kept_ngrams(reader: _Reader, count: int) -> None:
    for _ in range(count):
        reader.skip(4)
        if not 0 <= reader.integer() < count:
            raise ValueError("an n-gram of its dictionary has no vector")


def _flag(reader: _Reader) -> bool:
    value = reader.integer(1)
    if value not in (0, 1):
        raise ValueError("a mark is neither yes nor no")
    return value == 1


def _check_matrix(reader: _Reader, rows: int, columns: int, *, quantised: bool) -> None:
    by_norm = quantised and _flag(reader)
    if (reader.integer(8), reader.integer(8)) != (rows, columns):
        raise ValueError("a matrix has another size than its dictionary")
    if not quantised:
        reader.skip(4 * rows * columns)
        return
    codes = reader.integer()
    reader.skip(codes)
    parts = _check_quantiser(reader, columns)
    if codes != rows * parts:
        raise ValueError("the codes of a matrix are not one for each part")
    if by_norm:
        reader.skip(rows)
        _check_quantiser(reader, 1)


def _check_quantiser(reader: _Reader, columns: int) -> int:
    """The number of parts of a vector."""
    dim, parts, width, last = (reader.integer() for _ in range(4))
    if dim != columns or width < 1 or not 0 < last <= width or (parts - 1) * width + last != dim:
        raise ValueError("the parts of a quantised matrix do not fit")
    reader.skip(4 * dim * _CENTROIDS)
    return parts

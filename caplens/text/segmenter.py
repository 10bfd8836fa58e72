"""The base class of word segmenters for languages written without spaces: normalize, segment, drop punctuation."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from caplens.text.normalize import fold, without_punctuation
from caplens.text.tokenizer import Tokenizer

_LONGEST = 2000
"""Characters that are segmented together; no caption has more."""


class Segmenter(Tokenizer):
    """A tokenizer that wraps the word segmentation of another library."""

    @abstractmethod
    def segment(self, text: str) -> Iterable[str]:
        """The words of a text, punctuation included."""

    def __call__(self, text: str) -> list[str]:
        words = (without_punctuation(word).split() for word in self.segments(fold(text, self.lang)))
        return [part for word in words for part in word]

    def segments(self, text: str) -> Iterator[str]:
        """The words of a text of any length. The time of some libraries grows with the square of it, so they get it in pieces."""
        # MeCab takes C strings, which end at the first NUL.
        text = text.replace("\0", " ")
        for start in range(0, len(text), _LONGEST):
            yield from self.segment(text[start : start + _LONGEST])

"""The base class of word segmenters for languages written without spaces: normalize, segment, drop punctuation."""

from abc import abstractmethod
from collections.abc import Iterable

from caplens.text.normalize import fold, without_punctuation
from caplens.text.tokenizer import Tokenizer


class Segmenter(Tokenizer):
    """A tokenizer that wraps the word segmentation of another library."""

    @abstractmethod
    def segment(self, text: str) -> Iterable[str]:
        """The words of a text, punctuation included."""

    def __call__(self, text: str) -> list[str]:
        words = (without_punctuation(word).split() for word in self.segment(fold(text, self.lang)))
        return [part for word in words for part in word]

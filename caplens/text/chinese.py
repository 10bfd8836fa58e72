"""The `jieba` tokenizer for Chinese."""

import logging
from collections.abc import Iterable

from caplens.libraries import require
from caplens.text.segmenter import Segmenter


class JiebaTokenizer(Segmenter):
    name = "jieba"
    library = "jieba"

    def __init__(self, lang: str = "zh") -> None:
        super().__init__(lang)
        jieba = require("jieba", f"The tokenizer {self.name!r}", "cjk")
        jieba.setLogLevel(logging.WARNING)
        self._cut = jieba.Tokenizer().cut

    def segment(self, text: str) -> Iterable[str]:
        words: Iterable[str] = self._cut(text)
        return words

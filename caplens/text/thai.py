"""The `newmm` tokenizer for Thai: dictionary-based longest matching from PyThaiNLP."""

from collections.abc import Iterable

from caplens.libraries import require
from caplens.text.segmenter import Segmenter


class ThaiTokenizer(Segmenter):
    name = "newmm"
    library = "pythainlp"

    def __init__(self, lang: str = "th") -> None:
        super().__init__(lang)
        self._segment = require("pythainlp.tokenize", f"The tokenizer {self.name!r}", "cjk").word_tokenize

    def segment(self, text: str) -> Iterable[str]:
        words: Iterable[str] = self._segment(text, engine="newmm", keep_whitespace=False)
        return words

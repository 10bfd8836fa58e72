"""The `ja-mecab` tokenizer for Japanese: MeCab with the IPADIC dictionary, as in sacrebleu."""

from collections.abc import Iterable

from caplens.libraries import require
from caplens.text.segmenter import Segmenter


class JapaneseTokenizer(Segmenter):
    name = "ja-mecab"
    library = "ipadic"

    def __init__(self, lang: str = "ja") -> None:
        super().__init__(lang)
        mecab = require("MeCab", f"The tokenizer {self.name!r}", "cjk")
        dictionary = require("ipadic", f"The tokenizer {self.name!r}", "cjk")
        self._tagger = mecab.Tagger(f"{dictionary.MECAB_ARGS} -Owakati")

    def segment(self, text: str) -> Iterable[str]:
        return str(self._tagger.parse(text)).split()

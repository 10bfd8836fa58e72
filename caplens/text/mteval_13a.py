"""The `13a` tokenizer of mteval, from sacrebleu: the default for BLEU in machine translation."""

from caplens.libraries import require
from caplens.text.normalize import fold
from caplens.text.tokenizer import Tokenizer


class Mteval13aTokenizer(Tokenizer):
    name = "13a"
    library = "sacrebleu"

    def __init__(self, lang: str = "en") -> None:
        super().__init__(lang)
        self._tokenize = require("sacrebleu.tokenizers.tokenizer_13a", f"The tokenizer {self.name!r}", "sacrebleu").Tokenizer13a()

    def __call__(self, text: str) -> list[str]:
        return str(self._tokenize(fold(text, self.lang))).split()

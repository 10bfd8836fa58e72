"""The `intl` tokenizer of mteval, from sacrebleu: splits at the punctuation and symbols of all scripts."""

from caplens.libraries import require
from caplens.text.normalize import fold
from caplens.text.tokenizer import Tokenizer


class MtevalIntlTokenizer(Tokenizer):
    name = "intl"
    library = "sacrebleu"

    def __init__(self, lang: str = "en") -> None:
        super().__init__(lang)
        self._tokenize = require(
            "sacrebleu.tokenizers.tokenizer_intl", f"The tokenizer {self.name!r}", "sacrebleu"
        ).TokenizerV14International()

    def __call__(self, text: str) -> list[str]:
        return str(self._tokenize(fold(text, self.lang))).split()

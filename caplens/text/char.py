"""The `char` tokenizer: one token for each letter or digit; spaces and punctuation are dropped."""

import re

from caplens.text.normalize import fold, without_punctuation
from caplens.text.tokenizer import Tokenizer

_CHARACTER = re.compile(r"\S")


class CharTokenizer(Tokenizer):
    name = "char"

    def __call__(self, text: str) -> list[str]:
        return _CHARACTER.findall(without_punctuation(fold(text, self.lang)))

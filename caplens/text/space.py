"""The `space` tokenizer: splits at whitespace and changes nothing else, for text that is already tokenized."""

from caplens.text.tokenizer import Tokenizer


class SpaceTokenizer(Tokenizer):
    name = "space"

    def __call__(self, text: str) -> list[str]:
        return text.split()

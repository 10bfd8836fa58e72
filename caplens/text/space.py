"""Text that is tokenized already: words are what spaces part, as they are."""

from caplens.text.tokenizer import Tokenizer


class SpaceTokenizer(Tokenizer):
    name = "space"

    def __call__(self, text: str) -> list[str]:
        return text.split()

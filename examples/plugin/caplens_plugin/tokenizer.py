"""A tokenizer: every letter is a token, and nothing else is."""

from caplens.text import Tokenizer


class LetterTokenizer(Tokenizer):
    name = "letters"
    summary = "single letters, without digits and punctuation"

    def __call__(self, text: str) -> list[str]:
        return [character for character in text.lower() if character.isalpha()]

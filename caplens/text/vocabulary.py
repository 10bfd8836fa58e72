"""Tokens as numbers."""

SEPARATOR = "\0"
"""Stands between texts that are tokenised in one go; no tokenizer makes it a token."""


class Vocabulary(dict[str, int]):
    """Token -> number, given in the order of first sight. The separator has the number -1 and is not in it."""

    def __missing__(self, token: str) -> int:
        if token == SEPARATOR:
            return -1
        number = self[token] = len(self)
        return number

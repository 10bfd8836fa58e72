"""The mapping from tokens to ids."""

SEPARATOR = "\0"
"""Put between texts that are tokenized in one call; no tokenizer returns it as a token of a text."""


class Vocabulary(dict[str, int]):
    """Token -> id, in order of first occurrence. Lookup adds a new token. The separator has the id -1 and is not stored."""

    def __missing__(self, token: str) -> int:
        if token == SEPARATOR:
            return -1
        token_id = self[token] = len(self)
        return token_id

"""The mapping from tokens to ids."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

SEPARATOR, SEPARATOR_ID = "\0", -1
"""Put between texts that are tokenized in one call; no tokenizer returns it as a token of a text."""


class Vocabulary(dict[str, int]):
    """Token -> id, in order of first occurrence. Lookup adds a new token. The separator has its own id and is not stored."""

    def __init__(self) -> None:
        self._remembered: dict[str, Any] = {}

    def remembered(self, name: str, make: Callable[[], T]) -> T:
        """What a tokenizer keeps as long as the ids count, such as those of whole phrases; made when it is first asked for."""
        if name not in self._remembered:
            self._remembered[name] = make()
        value: T = self._remembered[name]
        return value

    def __missing__(self, token: str) -> int:
        if token == SEPARATOR:
            return SEPARATOR_ID
        token_id = self[token] = len(self)
        return token_id

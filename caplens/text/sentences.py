"""Sentence splitting by punctuation, in any language."""

import re

_END = re.compile(r"(?<=[.!?…؟।॥።។။])[\"'”’»)\]]*\s+|(?<=[。！？｡][」』”’）])|(?<=[。！？｡])(?![」』”’）])|\n+")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; a text without sentence punctuation is one sentence."""
    return [part.strip() for part in _END.split(text) if part and part.strip()] or [text]

"""Sentences of a caption in any language, by their punctuation."""

import re

_END = re.compile(r"(?<=[.!?…؟।॥።។။])[\"'”’»)\]]*\s+|(?<=[。！？｡][」』”’）])|(?<=[。！？｡])(?![」』”’）])|\n+")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; one without an end is one sentence."""
    return [part.strip() for part in _END.split(text) if part and part.strip()] or [text]

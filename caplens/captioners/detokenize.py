"""Words back to text as it is written in a language."""

_JOINED_BY = {"zh": "", "ja": "", "th": "", "lo": "", "my": "", "km": "", "bo": "\u0f0b"}
"""Language -> what stands between words, or syllables, where that is no space."""


def written(words: str, lang: str) -> str:
    """Words with spaces between them as text of a language."""
    return words.replace(" ", _JOINED_BY.get(lang, " "))

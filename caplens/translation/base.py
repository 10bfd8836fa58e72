"""What a translator is: texts in, several translations of each out, with log-probabilities where it has them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from caplens.data.languages import base_language
from caplens.errors import InputError, option


class Hypothesis(NamedTuple):
    """A translation of a text, and the mean log-probability of its tokens; None where the translator has none."""

    text: str
    log_probability: float | None = None


@dataclass(frozen=True)
class Translations:
    """The translations of one text, the most probable first."""

    hypotheses: list[Hypothesis] = field(default_factory=list)
    error: str | None = None
    """Why there are none."""
    complete: bool = True
    """Whether these are all that the translator has; others are not kept."""


class Translator(Protocol):
    """Translates texts.

    Attributes
    ----------
    name
        As the user named it.
    fingerprint
        A hash of everything that changes a translation: weights, settings, prompts.
    """

    name: str
    fingerprint: str

    def check_languages(self, source: str, target: str) -> None:
        """Raise an error if it cannot translate from one language to the other."""
        ...

    def translate(self, texts: Sequence[str], source: str, target: str, n: int) -> list[Translations]:
        """At most `n` translations of each text."""
        ...


def check_pair(source: str, target: str) -> tuple[str, str]:
    """The languages of a pair; an error for one that needs no translator, and for variants, which are not distinguished."""
    for tag in (source, target):
        if base_language(tag) != tag.lower():
            raise InputError(f"variants of a language such as {tag!r} are not distinguished; write {base_language(tag)!r}.")
    if source == target:
        raise InputError(f"the captions are in {source!r} already; choose another with {option('to', 'LANG')}.")
    return base_language(source), base_language(target)


def unknown_language(name: str, lang: str, langs: Sequence[str]) -> InputError:
    """The error for a language that a translator does not know."""
    shown = ", ".join(sorted(langs)[:40]) + (", …" if len(langs) > 40 else "")
    return InputError(f"{name} does not translate {lang!r}; it knows: {shown}.")

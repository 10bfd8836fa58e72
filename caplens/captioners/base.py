"""What a captioner is: images in, several captions of each out, with log-probabilities where it has them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from PIL.Image import Image

from caplens.errors import InputError
from caplens.translation.base import Hypothesis


@dataclass(frozen=True)
class ImageCaptions:
    """The captions of one image, the most probable first."""

    hypotheses: list[Hypothesis] = field(default_factory=list)
    error: str | None = None
    """Why there are none."""

    @classmethod
    def of(cls, hypotheses: Sequence[Hypothesis]) -> "ImageCaptions":
        """Those that have a text, each text once."""
        first = {hypothesis.text: hypothesis for hypothesis in reversed(hypotheses)}
        kept = [hypothesis for hypothesis in hypotheses if hypothesis.text and first[hypothesis.text] is hypothesis]
        return cls(kept) if kept else cls(error="the captioner returned no text")


class Captioner(Protocol):
    """Describes images.

    Attributes
    ----------
    name
        As the user named it.
    fingerprint
        A hash of everything that changes a caption: weights, settings, prompts.
    licence
        Of the weights, where it is known.
    """

    name: str
    fingerprint: str
    licence: str

    def check_language(self, lang: str) -> None:
        """Raise an error if it does not write in a language."""
        ...

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        """At most `n` captions of each image, in a language."""
        ...


@dataclass(frozen=True)
class SearchOptions:
    """How captions are searched.

    Attributes
    ----------
    beams
        Captions that are continued at each step; 1 is the most likely token at each.
    longest
        Tokens of a caption, at most.
    question
        What a model is asked, for those that are asked; `{language}` is the name of the language.
    seed
        Of captioners that draw captions.
    """

    beams: int = 1
    longest: int = 40
    question: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, most in (("beams", self.beams, 100), ("longest", self.longest, 4096)):
            if not 1 <= value <= most:
                raise InputError(f"{name!r} must be between 1 and {most:,}, not {value}.")


def language_not_written(name: str, lang: str, langs: Sequence[str]) -> InputError:
    """The error for a language that a captioner does not write."""
    return InputError(f"{name} writes no captions in {lang!r}; it writes: {', '.join(sorted(langs))}.")

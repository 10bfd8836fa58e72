"""Vectors of words: which tokens of a model belong to which word of a caption, in any script and with any tokenizer."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, normalized
from caplens.embed.engine import Engine
from caplens.embed.keys import Text
from caplens.text.words import join, split


class WordVectors(NamedTuple):
    """The words of a caption that the model reads, and their vectors."""

    words: list[str]
    vectors: Vectors
    """(words, dim), of length one."""


def word_vectors(engine: Engine, caption: str, lang: str | None = None) -> WordVectors:
    """The mean of the vectors of each word's tokens; words beyond the model's limit are left out.

    Parameters
    ----------
    engine
        The model, which must have vectors of single tokens.
    caption, lang
        The caption and its language.

    Returns
    -------
    WordVectors
        Of the words, in order.
    """
    # No more words can be read than the model takes tokens.
    words = split(caption, lang)[: engine.backbone.max_tokens]
    # As `split` has it: each run of whitespace is one space.
    (tokens,) = engine.tokens([Text(join(words))])
    ranges = token_ranges(engine.backbone, [join(words[: number + 1]) for number in range(len(words))])
    # A word of which the tokenizer leaves nothing has no vector.
    means = {
        place: tokens[part.start : part.stop].mean(0) for place, part in enumerate(ranges) if len(tokens[part.start : part.stop])
    }
    vectors = normalized(np.array(list(means.values()))) if means else np.zeros((0, tokens.shape[1]), dtype=np.float32)
    return WordVectors([words[place].text for place in means], vectors)


def token_ranges(backbone: Backbone, beginnings: Sequence[str]) -> list[range]:
    """The tokens of each word, from the texts that end with it: those by which a text is longer than the one before."""
    read = takewhile(lambda tokens: not tokens.cut, backbone.tokenize(["", *beginnings]))
    # The end marker is no part of a word, and a text may be no longer than the one before where tokens are merged.
    return [range(min(first, last - 1), last) for first, last in pairwise(len(tokens.ids) - 1 for tokens in read)]

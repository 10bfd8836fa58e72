"""Beam search over the tokens of captions, of several images at once, with numpy.

A caption's score is the mean log-probability of its tokens, the end marker included. Of the candidates of a step, those that end
are finished; the best others go on. The search of an image ends when none that goes on can be better than those finished.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Floats, Ints

LogProbabilities = NDArray[np.float32]
Step = Callable[[Ints, Ints], LogProbabilities]
"""(token of each beam, beam of the step before that it continues) -> log-probabilities of the next token: (beams, pieces)."""


class TokenSequence(NamedTuple):
    """The tokens of a caption, without its end marker, and the mean of their log-probabilities with it."""

    tokens: tuple[int, ...]
    log_probability: float


def beam_search(step: Step, first: Ints, beams: int, n: int, longest: int, end: int) -> list[list[TokenSequence]]:
    """The best captions of each image.

    Parameters
    ----------
    step
        The decoder. It is asked for `beams` captions of each image, those of one image side by side.
    first
        The first token of each image's captions, which is not part of them: that of the language.
    beams
        Captions that are continued at each step.
    n
        Captions to return, at most `beams`.
    longest
        Tokens of a caption, at most.
    end
        The end marker.

    Returns
    -------
    list of list of TokenSequence
        The captions of each image, the best first.
    """
    images = len(first)
    totals = np.full((images, beams), -np.inf)
    totals[:, 0] = 0
    tokens = np.zeros((images, beams, 0), dtype=np.int64)
    finished: list[list[TokenSequence]] = [[] for _ in range(images)]
    done = np.zeros(images, dtype=bool)
    last, order = np.repeat(first, beams), np.arange(images * beams)
    for length in range(1, longest + 2):
        scores = step(last, order).reshape(images, beams, -1)
        if length > longest:
            # Whatever has not ended ends here.
            scores[:, :, np.arange(scores.shape[2]) != end] = -np.inf
        sources, chosen, sums = _best(totals[:, :, None] + scores, 2 * beams)
        kept = np.zeros((images, beams), dtype=np.int64)
        next_tokens = np.full((images, beams), end, dtype=np.int64)
        totals = np.full((images, beams), -np.inf)
        for image in np.flatnonzero(~done):
            place = 0
            for rank, (source, token, total) in enumerate(zip(sources[image], chosen[image], sums[image], strict=True)):
                if total == -np.inf:
                    break
                if token == end:
                    if rank < beams:
                        finished[image].append(TokenSequence(tuple(tokens[image, source].tolist()), float(total) / length))
                elif place < beams:
                    kept[image, place], next_tokens[image, place], totals[image, place] = source, token, total
                    place += 1
            done[image] = _is_done(finished[image], beams, totals[image].max(), length)
        if done.all() or length > longest:
            break
        order = (kept + np.arange(images)[:, None] * beams).ravel()
        tokens = np.concatenate([np.take_along_axis(tokens, kept[:, :, None], 1), next_tokens[:, :, None]], axis=2)
        last = next_tokens.ravel()
    return [sorted(captions, key=lambda caption: -caption.log_probability)[:n] for captions in finished]


def _best(candidates: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """Of each image, the beams, tokens and sums of the best candidates, the best first; of equal ones, the first."""
    images, beams, pieces = candidates.shape
    flat = candidates.reshape(images, beams * pieces)
    count = min(count, flat.shape[1])
    top = np.sort(np.argpartition(-flat, count - 1, axis=1)[:, :count], axis=1)
    ordered = np.take_along_axis(top, np.argsort(-np.take_along_axis(flat, top, 1), axis=1, kind="stable"), 1)
    return ordered // pieces, ordered % pieces, np.take_along_axis(flat, ordered, 1)


def _is_done(finished: list[TokenSequence], beams: int, best_total: float, length: int) -> bool:
    """Whether no caption that goes on can become better than the worst of the best ones that are finished."""
    if len(finished) < beams:
        return False
    worst = sorted((caption.log_probability for caption in finished), reverse=True)[beams - 1]
    return bool(best_total / length <= worst)

"""Which of several translations is kept (multilingual CLIPScore, appendix C).

Those in another language are dropped first. Of the others, the best by quality estimates is kept, by the mean of its ranks where
there are several, and by log-probability where these are equal; or the one that is most like all the others (minimum Bayes risk).
Where none is in the target language, the best of all is kept and marked.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from caplens.arrays import Floats
from caplens.text.identification import LanguageModel, default_model, identify_language
from caplens.text.scripts import script_of, scripts_of
from caplens.translation.base import Hypothesis
from caplens.translation.chrf import chrf_matrix

MBR = "mbr"
"""The name of the selection by minimum Bayes risk."""


class Selected(NamedTuple):
    """The translation that is kept."""

    text: str
    rank: int
    """Its place among the hypotheses of the translator, from 0."""
    right_language: bool
    scores: dict[str, float]
    """Quality estimate -> its value; for MBR, the mean chrF with the others."""
    log_probability: float | None
    candidates: int
    """How many hypotheses there were, each text once."""
    wrong_language: int
    """How many of them are in another language."""
    first_in_language: bool = True
    """Whether the first of them is in the target language."""

    @property
    def changed(self) -> bool:
        """Whether another one than the first was kept."""
        return self.rank > 0


def in_language(texts: Sequence[str], target: str, plausible: Sequence[str], model: LanguageModel | None = None) -> list[bool]:
    """Which texts are in the target language, among plausible languages; one of digits alone counts as such.

    For a language that the model does not know, only the writing system counts.
    """
    model = model or default_model()
    if not model.knows(target):
        plausible = ()
    return [any(map(str.isalnum, text)) and _is_in_language(text, target, plausible, model) for text in texts]


def _is_in_language(text: str, target: str, plausible: Sequence[str], model: LanguageModel) -> bool:
    identified = identify_language(text, [target, *plausible], model).lang
    if identified is None:
        # Nothing can tell the language, except that another writing system is not the target's.
        script = script_of(text)
        return script in scripts_of(target) if script is not None else not any(map(str.isalpha, text))
    return identified == target


def distinct(hypotheses: Sequence[Hypothesis]) -> list[tuple[int, Hypothesis]]:
    """The hypotheses that are not empty, each text once, with their places."""
    seen: dict[str, tuple[int, Hypothesis]] = {}
    for place, hypothesis in enumerate(hypotheses):
        if hypothesis.text.strip():
            seen.setdefault(hypothesis.text, (place, hypothesis))
    return list(seen.values())


def select(
    hypotheses: Sequence[tuple[int, Hypothesis]], right_language: Sequence[bool], qualities: Mapping[str, Floats]
) -> Selected:
    """The best of several hypotheses.

    Parameters
    ----------
    hypotheses
        Distinct ones with their places; at least one.
    right_language
        Whether each is in the target language.
    qualities
        Quality estimate -> its value for each hypothesis, higher is better; without any, the first is the best.

    Returns
    -------
    Selected
        The one that is kept.
    """
    rows = [row for row, right in enumerate(right_language) if right] or list(range(len(hypotheses)))
    ranks = np.zeros(len(rows))
    for values in qualities.values():
        # The worst has rank 1; equal values share a rank, and a value that is not a number is the worst.
        ranks += rankdata(np.nan_to_num(values[rows], nan=-np.inf))
    probabilities = [hypotheses[row][1].log_probability for row in rows]
    # Without an estimate the translator's own order counts.
    ties = [-np.inf if probability is None or not qualities else probability for probability in probabilities]
    keys = [(rank, tie, -hypotheses[row][0]) for rank, tie, row in zip(ranks, ties, rows, strict=True)]
    best = rows[max(range(len(rows)), key=keys.__getitem__)]
    place, hypothesis = hypotheses[best]
    return Selected(
        hypothesis.text,
        place,
        right_language[best],
        {name: float(values[best]) for name, values in qualities.items()},
        hypothesis.log_probability,
        len(hypotheses),
        sum(not right for right in right_language),
        right_language[0],
    )


def bayes_quality(texts: Sequence[str]) -> Floats:
    """For each text its mean chrF with the others: minimum Bayes risk with equal weights."""
    if len(texts) < 2:
        return np.zeros(len(texts))
    matrix = chrf_matrix(texts)
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(matrix.sum(1) / (len(texts) - 1))

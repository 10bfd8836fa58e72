"""What people's answers say: quality by language, wins and losses of systems, and how well a metric predicts them.

Crossmodal-3600 (Thapliyal et al. 2022), sections 2.5, 3.3 and 3.4, tables 2, 4 and 6.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from caplens.arrays import Floats
from caplens.results.study import (
    ALL,
    Agreement,
    Bounded,
    DeltaCorrelation,
    DeltaPair,
    LanguageQuality,
    SideBySide,
    SystemStrength,
)
from caplens.stats import (
    PEARSON,
    RESAMPLES,
    SPEARMAN,
    TAU_B,
    bootstrap_pooled,
    bradley_terry_strengths,
    fleiss_kappa,
    interval,
    krippendorff_alpha,
    majority,
    sign_test,
)

PERCENT = 100.0


class CaptionRating(NamedTuple):
    """One person's rating of one caption; `value` is None where there was not enough information."""

    image: str
    caption: str
    lang: str
    system: str
    rater: str
    value: float | None


class Preference(NamedTuple):
    """One person's judgement of two captions of one image: positive where the caption of `system` is better."""

    image: str
    lang: str
    system: str
    baseline: str
    rater: str
    value: float
    caption: str = ""
    """Which captions of the image these are, where it has several."""


def lower_median(values: Sequence[float]) -> float:
    """The median; of the two in the middle the lower one, as raters are told to decide when they are in doubt."""
    return sorted(values)[(len(values) - 1) // 2]


def quality_by_language(
    ratings: Iterable[CaptionRating], scale: Mapping[str, float], resamples: int = RESAMPLES, seed: int = 0
) -> list[LanguageQuality]:
    """The quality of captions in each language and of each system, as in table 2 of Crossmodal-3600.

    Parameters
    ----------
    ratings
        The ratings of all captions.
    scale
        Label -> value, the best first.
    resamples, seed
        For the intervals, by bootstrap over images.

    Returns
    -------
    list of LanguageQuality
        One for each language and system, in alphabetical order.
    """
    groups: dict[tuple[str, str], list[CaptionRating]] = {}
    for rating in ratings:
        groups.setdefault((rating.lang, rating.system), []).append(rating)
    return [_quality(lang, system, group, scale, resamples, seed) for (lang, system), group in sorted(groups.items())]


def _quality(
    lang: str, system: str, ratings: list[CaptionRating], scale: Mapping[str, float], resamples: int, seed: int
) -> LanguageQuality:
    by_caption: dict[tuple[str, str], list[float | None]] = {}
    for rating in ratings:
        by_caption.setdefault((rating.image, rating.caption), []).append(rating.value)
    medians = np.array([_median(values) for values in by_caption.values()])
    images = [image for image, _ in by_caption]
    at_least = {}
    for place, (label, value) in enumerate(scale.items()):
        # Comparisons with NaN, of captions that nobody could judge, are false: they count in the whole, as in the paper.
        reached = medians <= value if place == len(scale) - 1 else medians >= value
        at_least[label] = _share(reached.astype(np.float64), images, resamples, seed)
    unknown = float(np.isnan(medians).mean()) * PERCENT
    table = [(f"{rating.image}\0{rating.caption}", rating.rater, rating.value) for rating in ratings]
    return LanguageQuality(lang, system, len(medians), len(ratings), at_least, unknown, agreement_of(table))


def _median(values: Sequence[float | None]) -> float:
    judged = [value for value in values if value is not None]
    return lower_median(judged) if len(judged) * 2 >= len(values) and judged else float("nan")


def _share(values: Floats, images: Sequence[str], resamples: int, seed: int) -> Bounded:
    """The mean of values in percent, with its interval."""
    sums = np.stack([values, np.ones(len(values))], axis=1)
    resampled = bootstrap_pooled(sums, lambda total: total[..., 0] / total[..., 1], images, resamples, seed) * PERCENT
    return Bounded(float(values.mean()) * PERCENT, *interval(resampled))


def agreement_of(ratings: Iterable[tuple[str, str, float | None]]) -> Agreement:
    """Alpha (ordinal) and kappa of (item, rater, value); NaN where no item has two ratings, or all are equal."""
    judged = [(item, rater, value) for item, rater, value in ratings if value is not None]
    items = {item: place for place, item in enumerate(dict.fromkeys(item for item, _, _ in judged))}
    values = sorted({value for _, _, value in judged})
    counts = np.zeros((len(items), len(values)))
    for item, _, value in judged:
        counts[items[item], values.index(value)] += 1
    several = counts[counts.sum(axis=1) >= 2]
    if not len(several):
        return Agreement(float("nan"), float("nan"))
    equal = (several.sum(axis=1) == several.sum(axis=1)[0]).all()
    # Alpha does not depend on who gave which rating of an item, so a table has a row for the first, the second, and so on.
    table = np.full((int(counts.sum(axis=1).max()), len(items)), np.nan)
    filled = np.zeros(len(items), dtype=int)
    for item, _, value in judged:
        table[filled[items[item]], items[item]] = value
        filled[items[item]] += 1
    return Agreement(krippendorff_alpha(table, "ordinal"), fleiss_kappa(several) if equal else float("nan"))


def side_by_sides(preferences: Iterable[Preference], resamples: int = RESAMPLES, seed: int = 0) -> list[SideBySide]:
    """Wins, losses and their difference for each language and pair of systems (section 3.3 of Crossmodal-3600).

    Parameters
    ----------
    preferences
        The judgements of all pairs.
    resamples, seed
        For the intervals, by bootstrap over images.

    Returns
    -------
    list of SideBySide
        One for each language and pair, in alphabetical order.
    """
    groups: dict[tuple[str, str, str], list[Preference]] = {}
    for preference in preferences:
        groups.setdefault((preference.lang, preference.system, preference.baseline), []).append(preference)
    return [_side_by_side(*key, group, resamples, seed) for key, group in sorted(groups.items())]


def _side_by_side(lang: str, system: str, baseline: str, preferences: list[Preference], resamples: int, seed: int) -> SideBySide:
    outcome = majority(_votes(preferences)).astype(np.float64)
    images = [image for image, _ in _by_pair(preferences)]
    wins, losses = int((outcome > 0).sum()), int((outcome < 0).sum())
    agreement = agreement_of((f"{entry.image}\0{entry.caption}", entry.rater, entry.value) for entry in preferences)
    return SideBySide(
        lang, system, baseline, len(set(images)), len(preferences),
        wins / len(outcome) * PERCENT, losses / len(outcome) * PERCENT,
        _share(outcome, images, resamples, seed), sign_test(wins, losses), agreement,
    )  # fmt: skip


def _votes(preferences: Sequence[Preference]) -> Floats:
    """Pairs of captions by votes; NaN where a pair has fewer than others."""
    by_pair = _by_pair(preferences)
    votes = np.full((len(by_pair), max(map(len, by_pair.values()))), np.nan)
    for row, values in zip(votes, by_pair.values(), strict=True):
        row[: len(values)] = values
    return votes


def _by_pair(preferences: Sequence[Preference]) -> dict[tuple[str, str], list[float]]:
    """(Image, caption) -> the votes for this pair of captions."""
    by_pair: dict[tuple[str, str], list[float]] = {}
    for entry in preferences:
        by_pair.setdefault((entry.image, entry.caption), []).append(entry.value)
    return by_pair


def votes_of_pair(preferences: Iterable[Preference], system: str, baseline: str) -> Floats:
    """The votes for a pair of systems in all languages, as `side_by_side_power` takes a pilot."""
    chosen = [
        entry._replace(image=f"{entry.lang}\0{entry.image}")
        for entry in preferences
        if (entry.system, entry.baseline) == (system, baseline)
    ]
    return _votes(chosen) if chosen else np.empty((0, 0))


def strengths_by_language(preferences: Iterable[Preference], resamples: int = RESAMPLES, seed: int = 0) -> list[SystemStrength]:
    """Bradley-Terry strengths of three or more systems in each language, and in all together.

    Parameters
    ----------
    preferences
        The judgements of all pairs.
    resamples, seed
        For the intervals, by bootstrap over images.

    Returns
    -------
    list of SystemStrength
        The strongest first; none where there are two systems, whose wins say the same.
    """
    entries = list(preferences)
    langs = sorted({entry.lang for entry in entries})
    strengths = []
    for lang in [*langs, *([ALL] if len(langs) > 1 else [])]:
        of_language = [entry for entry in entries if lang in (ALL, entry.lang)]
        systems = sorted({name for entry in of_language for name in (entry.system, entry.baseline)})
        if len(systems) < 3:
            continue
        images = {image: row for row, image in enumerate(dict.fromkeys(entry.image for entry in of_language))}
        wins = np.zeros((len(images), len(systems), len(systems)))
        for entry in of_language:
            first, second = systems.index(entry.system), systems.index(entry.baseline)
            share = (np.sign(entry.value) + 1) / 2
            wins[images[entry.image], first, second] += share
            wins[images[entry.image], second, first] += 1 - share
        of_systems = bradley_terry_strengths(wins, resamples, seed)
        rows = [SystemStrength(lang, name, Bounded(*value)) for name, value in zip(systems, of_systems, strict=True)]
        strengths += sorted(rows, key=lambda row: -row.strength.value)
    return strengths


def delta_pairs(entries: Iterable[SideBySide], scores: Mapping[str, Mapping[tuple[str, str], float]]) -> list[DeltaPair]:
    """Beside wins - losses of people, how much more the system scores than its baseline.

    Parameters
    ----------
    entries
        Of people.
    scores
        Metric -> (language, system) -> corpus score.

    Returns
    -------
    list of DeltaPair
        Of those pairs for which each metric has both scores.
    """
    pairs = []
    for entry in entries:
        deltas = {
            metric: values.get((entry.lang, entry.system), np.nan) - values.get((entry.lang, entry.baseline), np.nan)
            for metric, values in scores.items()
        }
        if all(delta == delta for delta in deltas.values()):
            pairs.append(DeltaPair(entry.lang, entry.system, entry.baseline, entry.delta.value, deltas))
    return pairs


def delta_correlations(pairs: Sequence[DeltaPair]) -> list[DeltaCorrelation]:
    """How differences of each metric go with those of people, in each language and in all: table 6 of Crossmodal-3600.

    Parameters
    ----------
    pairs
        All with the same metrics.

    Returns
    -------
    list of DeltaCorrelation
        With each pair in both directions, as the paper has them, and with each once.
    """
    langs = sorted({pair.lang for pair in pairs})
    groups = {lang: [pair for pair in pairs if lang in (ALL, pair.lang)] for lang in ([ALL] if len(langs) > 1 else []) + langs}
    return [
        _correlation(metric, lang, group, both_ways)
        for metric in (pairs[0].metrics if pairs else ())
        for both_ways in (True, False)
        for lang, group in groups.items()
        if len(group) > 1
    ]


def _correlation(metric: str, lang: str, pairs: Sequence[DeltaPair], both_ways: bool) -> DeltaCorrelation:
    deltas = np.array([(pair.metrics[metric], pair.human) for pair in pairs])
    if both_ways:
        deltas = np.concatenate([deltas, -deltas])
    values = [coefficient(deltas[:, 0], deltas[:, 1]) for coefficient in (PEARSON, SPEARMAN, TAU_B)]
    return DeltaCorrelation(metric, lang, both_ways, len(deltas), *values)

"""What answers say: the tables of Crossmodal-3600 from its own numbers, and examples worked by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.human.analysis import (
    CaptionRating,
    Preference,
    agreement_of,
    delta_correlations,
    lower_median,
    quality_by_language,
    side_by_sides,
    strengths_by_language,
)
from caplens.results.loading import load_results
from caplens.results.study import ALL, DeltaPair, StudyResult

SCALE = {"EXCELLENT": 4, "GOOD": 3, "MEDIUM": 2, "BAD": 1}


def table_4(golden):
    """The rows of table 4: Delta of side by side, and of CIDEr on XM600, XM3600 and COCO-DEV."""
    return [
        DeltaPair(lang, system, baseline, human, dict(zip(("xm600", "xm3600", "coco-dev"), deltas, strict=True)))
        for system, baseline, lang, human, *deltas in golden("crossmodal3600")["table 4"]
    ]


@pytest.mark.parametrize("lang", [ALL, "en", "es", "hi", "zh"])
def test_table_4_gives_the_xm600_column_of_table_6_exactly(golden, lang):
    published = golden("crossmodal3600")["table 6"][lang]
    (row,) = [
        row for row in delta_correlations(table_4(golden)) if (row.metric, row.lang, row.both_ways) == ("xm600", lang, True)
    ]
    assert row.pairs == (48 if lang == ALL else 12)
    for name in ("pearson", "spearman", "kendall"):
        # Half a unit of the last digit, and half of one more for values that lie between two.
        assert getattr(row, name) == pytest.approx(published[name][0], abs=0.00501)


def test_counting_each_pair_once_is_lower(golden):
    rows = {(row.both_ways, row.lang): row for row in delta_correlations(table_4(golden)) if row.metric == "xm600"}
    assert rows[False, ALL].pairs == 24
    assert rows[False, ALL].kendall == pytest.approx(0.613, abs=0.001)
    assert rows[True, ALL].kendall == pytest.approx(0.797, abs=0.001)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9))
def test_the_median_is_never_above_that_of_numpy(values):
    assert lower_median(values) <= np.median(values)
    assert lower_median(values) in values


def test_quality_is_counted_as_in_table_2():
    ratings = {"a": [4, 4, 3], "b": [3, 2, 3], "c": [1, 2, 1], "d": [None, None, 4], "e": [2, 3]}
    entries = [
        CaptionRating(image, image, "de", "", str(rater), value)
        for image, of in ratings.items()
        for rater, value in enumerate(of)
    ]
    (row,) = quality_by_language(entries, SCALE, resamples=50)
    shares = {label: round(estimate.value) for label, estimate in row.at_least.items()}
    # Medians are 4, 3, 1, not enough information, and 2, the lower one of 2 and 3.
    assert shares == {"EXCELLENT": 20, "GOOD": 40, "MEDIUM": 60, "BAD": 20}
    assert (row.captions, row.ratings, row.unknown) == (5, 14, 20.0)
    assert row.at_least["GOOD"].low <= 40 <= row.at_least["GOOD"].high


def test_wins_need_two_of_three():
    votes = {"a": [3, 1, -1], "b": [1, 0, 0], "c": [-2, -1, 0], "d": [1, 1, 1]}
    entries = [Preference(image, "en", "m2", "m1", str(r), value) for image, of in votes.items() for r, value in enumerate(of)]
    (row,) = side_by_sides(entries, resamples=50)
    assert (row.wins, row.losses, row.delta.value, row.images, row.judgements) == (50.0, 25.0, 25.0, 4, 12)
    assert row.p == 1.0


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-3, 3)), min_size=3, max_size=40))
def test_turning_a_pair_around_turns_its_sign(votes):
    entries = [Preference(image, "en", "x", "y", str(place), value) for place, (image, value) in enumerate(votes)]
    turned = [entry._replace(system="y", baseline="x", value=-entry.value) for entry in entries]
    (one,), (other,) = side_by_sides(entries, 10), side_by_sides(turned, 10)
    assert (one.wins, one.losses, one.delta.value) == (other.losses, other.wins, -other.delta.value)
    assert one.p == other.p


def test_agreement_is_that_of_krippendorff_and_fleiss():
    krippendorff = pytest.importorskip("krippendorff", reason="needs the extra 'test' (krippendorff is not installed)")
    rng = np.random.default_rng(0)
    table = rng.integers(1, 5, (3, 40))
    entries = [(str(item), str(rater), float(table[rater, item])) for rater in range(3) for item in range(40)]
    agreement = agreement_of(entries)
    assert agreement.alpha == pytest.approx(krippendorff.alpha(table, level_of_measurement="ordinal"))
    assert -0.1 < agreement.kappa < 0.1
    missing = agreement_of([entry for place, entry in enumerate(entries) if place % 7])
    assert np.isnan(missing.kappa)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.0, 0.2, 0.5])
def test_agreement_of_simulated_raters_is_that_of_their_error_rate(error):
    """Who guesses at random with some probability agrees, beyond chance, as often as two of them do not guess."""
    rng = np.random.default_rng(7)
    kappas, alphas = [], []
    for _ in range(1000 if error else 10):
        truth = rng.integers(1, 5, 60)
        rated = np.where(rng.random((3, 60)) < error, rng.integers(1, 5, (3, 60)), truth)
        agreement = agreement_of((str(i), str(r), float(rated[r, i])) for r in range(3) for i in range(60))
        kappas.append(agreement.kappa)
        alphas.append(agreement.alpha)
    expected = (1 - error) ** 2
    assert np.mean(kappas) == pytest.approx(expected, abs=0.01)
    assert np.mean(alphas) == pytest.approx(expected, abs=0.01)


def test_strengths_are_given_for_three_systems_in_each_language_and_all():
    rng = np.random.default_rng(1)
    entries = [
        Preference(str(image), lang, one, other, "r", float(rng.choice([1, -1], p=[0.7, 0.3])))
        for image in range(60)
        for lang in ("de", "en")
        for one, other in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    rows = strengths_by_language(entries, resamples=100)
    assert [(row.lang, row.system) for row in rows] == [(lang, system) for lang in ("de", "en", ALL) for system in "abc"]
    assert strengths_by_language([entry for entry in entries if "c" not in (entry.system, entry.baseline)]) == []


def test_a_result_is_read_as_it_was_written(golden, tmp_path):
    entries = [Preference(str(n), "en", "x", "y", "r", n % 3 - 1.0) for n in range(9)]
    ratings = [CaptionRating(str(n), str(n), "de", "", "r", 1.0 + n % 4) for n in range(9)]
    pairs = table_4(golden)
    result = StudyResult(
        "t",
        "rate",
        quality_by_language(ratings, SCALE, 10),
        side_by_sides(entries, 10),
        [],
        pairs,
        delta_correlations(pairs),
        ["w"],
    )
    result.save(tmp_path / "study.json")
    again = load_results(tmp_path / "study.json")
    assert again.to_dict() == result.to_dict()
    assert str(again) == str(result)
    result.save(tmp_path / "study.csv")
    assert len((tmp_path / "study.csv").read_text(encoding="utf-8").splitlines()) == 1 + 5 + 4 + 3 * len(result.correlations)
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()

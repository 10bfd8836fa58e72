"""Percentiles, conformal intervals and shifts, beside scipy and what theory promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, mannwhitneyu, percentileofscore

from caplens.errors import InputError
from caplens.stats.conformal import conformal_bounds
from caplens.stats.percentiles import Distribution
from caplens.stats.shift import measure_shift


def test_percentiles_are_those_of_scipy_to_half_a_point():
    values = np.random.default_rng(0).normal(size=20_000)
    distribution = Distribution.of(values)
    points = np.linspace(-3, 3, 50)
    expected = np.array([percentileofscore(values, point) for point in points])
    assert np.abs(distribution.percentile(points) - expected).max() < 0.5


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.lists(st.floats(-6, 6), min_size=2, max_size=10))
@settings(max_examples=200, deadline=None)
def test_a_percentile_rises_with_the_score_and_lies_between_0_and_100(values, points):
    percentiles = Distribution.of(np.array(values)).percentile(np.sort(np.array(points)))
    assert (np.diff(percentiles) >= -1e-9).all()
    assert ((percentiles >= 0) & (percentiles <= 100)).all()


def test_of_equal_values_half_lie_below():
    assert Distribution.of(np.array([1.0, 1.0, 1.0])).percentile(np.array([1.0])) == pytest.approx([50], abs=1)
    half = Distribution.of(np.array([0.0] * 50 + [1.0] * 50)).percentile(np.array([0.0, 1.0]))
    assert half == pytest.approx([25, 75], abs=2)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_conformal_intervals_cover_what_they_promise_whatever_the_distribution(coverage):
    rng, covered = np.random.default_rng(1), []
    for seed in range(60):
        scores = rng.random(1200)
        ratings = np.clip(4 * scores + rng.standard_t(3, 1200) * (0.2 + scores), 0, 5)
        bounds = conformal_bounds(scores[:600], ratings[:600], coverage=coverage, seed=seed)
        low, high = bounds.interval(scores[600:])
        covered.append(np.mean((ratings[600:] >= low) & (ratings[600:] <= high)))
    assert np.mean(covered) == pytest.approx(coverage, abs=0.02)


def test_conformal_intervals_need_enough_rows_and_a_score_that_says_something():
    with pytest.raises(InputError, match="too few"):
        conformal_bounds(np.arange(30.0), np.arange(30.0))
    with pytest.raises(InputError, match="all scores are equal"):
        conformal_bounds(np.ones(100), np.arange(100.0))
    with pytest.raises(InputError, match="between 0 and 1"):
        conformal_bounds(np.arange(100.0), np.arange(100.0), coverage=1)


def test_a_shift_has_the_tests_of_scipy():
    rng = np.random.default_rng(2)
    old, new = rng.normal(size=300), rng.normal(0.3, 1, 250)
    shift = measure_shift(old, new, resamples=500)
    assert shift.level_p == pytest.approx(mannwhitneyu(new, old).pvalue)
    assert shift.shape_p == pytest.approx(ks_2samp(old, new).pvalue)
    assert shift.difference == pytest.approx(new.mean() - old.mean())
    assert shift.low < shift.difference < shift.high
    assert shift.higher == pytest.approx(np.mean(new[:, None] > old[None, :]))


def test_captions_of_one_image_count_once():
    rng = np.random.default_rng(3)
    wrong, right = 0, 0
    for _ in range(200):
        old, new = (np.repeat(rng.normal(size=20), 10) + rng.normal(0, 0.1, 200) for _ in range(2))
        groups = np.repeat(np.arange(20), 10)
        right += measure_shift(old, new, groups, groups, resamples=0).level_p < 0.05
        wrong += measure_shift(old, new, resamples=0).level_p < 0.05
    assert right / 200 < 0.1
    assert wrong / 200 > 0.3

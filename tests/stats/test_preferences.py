"""Preferences between systems, against closed forms, scipy, and simulations whose truth is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from caplens.errors import InputError
from caplens.stats import bradley_terry, bradley_terry_strengths, majority, side_by_side_power, sign_test


def test_of_two_systems_the_strengths_are_the_log_odds():
    assert np.diff(bradley_terry([[0, 10], [30, 0]], prior=0))[0] == pytest.approx(np.log(3))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_it_is_the_maximum_of_the_likelihood(seed):
    wins = np.random.default_rng(seed).integers(1, 30, (4, 4)).astype(float)
    np.fill_diagonal(wins, 0)

    def loss(strengths):
        gaps = strengths[:, None] - strengths[None, :]
        return (wins * np.log1p(np.exp(-gaps))).sum()

    best = minimize(loss, np.zeros(4), method="BFGS").x
    np.testing.assert_allclose(bradley_terry(wins, prior=0), best - best.mean(), atol=1e-4)


def test_a_system_that_always_wins_is_strong_and_not_infinite():
    strengths = bradley_terry([[0, 5, 5], [0, 0, 3], [0, 2, 0]])
    assert np.isfinite(strengths).all()
    assert strengths[0] > strengths[1] > strengths[2]


def test_what_cannot_be_compared_is_said():
    with pytest.raises(InputError, match="never compared"):
        bradley_terry([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    with pytest.raises(InputError, match="without negative"):
        bradley_terry([[0, -1], [1, 0]])


@pytest.mark.slow
def test_intervals_hold_the_true_strengths_as_often_as_they_say():
    truth = np.array([0.6, 0.2, -0.2, -0.6])
    rng, held = np.random.default_rng(0), []
    for seed in range(1000):
        wins = np.zeros((120, 4, 4))
        for one in range(4):
            for other in range(one):
                first = rng.random(120) < 1 / (1 + np.exp(truth[other] - truth[one]))
                wins[:, one, other], wins[:, other, one] = first, ~first
        held += [s.low <= t <= s.high for s, t in zip(bradley_terry_strengths(wins, 100, seed), truth, strict=True)]
    assert 0.92 <= np.mean(held) <= 0.97


def test_a_majority_is_more_than_half_of_those_who_judged():
    votes = [[1, 2, 3], [1, 0, 0], [-1, -1, 2], [1, np.nan, np.nan], [1, -1, np.nan]]
    assert majority(votes).tolist() == [1, 0, -1, 1, 0]
    assert majority(votes, needed=2).tolist() == [1, 0, -1, 0, 0]


def test_the_sign_test_is_exact():
    assert sign_test(9, 1) == pytest.approx(22 / 1024)
    assert sign_test(0, 0) == 1.0


def test_power_is_that_of_the_closed_form_with_one_rater():
    # Every image is won with the probability 0.65, so that wins are binomial.
    pilot = np.array([[1.0]] * 65 + [[-1.0]] * 35)
    power = side_by_side_power(pilot, 100, 1, simulations=2000, seed=1)
    exact = np.mean(
        [sign_test(int(wins), 100 - int(wins)) < 0.05 for wins in np.random.default_rng(2).binomial(100, 0.65, 20_000)]
    )
    assert power.low <= exact <= power.high


def test_equal_systems_are_told_apart_no_more_often_than_chance_and_more_images_show_more():
    equal = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]] * 50)
    assert side_by_side_power(equal, 200, 3, simulations=1000).power <= 0.06
    better = np.array([[1.0, 1.0, -1.0]] * 80 + [[-1.0, -1.0, 1.0]] * 20)
    powers = [side_by_side_power(better, images, 3, simulations=300).power for images in (20, 100, 400)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.8
    with pytest.raises(InputError, match="at least one vote"):
        side_by_side_power([[np.nan]], 10, 3)

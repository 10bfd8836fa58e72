from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.errors import InputError
from caplens.stats import (
    PEARSON,
    TAU_B,
    benjamini_hochberg,
    bonferroni,
    bootstrap_metrics,
    bootstrap_systems,
    bootstrapped_difference,
    holm,
    permute_metrics,
    permute_systems,
    significance,
    williams,
)


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def _with_ones(values):
    return np.stack([np.asarray(values, dtype=float), np.ones(len(values))], axis=1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=8))
def test_the_exact_permutation_test_is_that_of_trying_all_swaps(pairs):
    a, b = np.array(pairs, dtype=float).T
    observed = abs((a - b).mean())
    extreme = [abs(np.mean((a - b) * signs)) >= observed - 1e-12 for signs in product([1, -1], repeat=len(a))]
    found = permute_systems(_with_ones(a), _with_ones(b), mean, resamples=1000)
    assert found.p == pytest.approx(np.mean(extreme))
    assert found.value == pytest.approx((a - b).mean())


def test_a_worked_example_of_the_permutation_test():
    # Five pairs that all differ the same way: only 2 of the 32 sign patterns are as extreme.
    found = permute_systems(_with_ones([2, 3, 4, 5, 6]), _with_ones([1, 1, 1, 1, 1]), mean)
    assert (found.value, found.p) == (3, 2 / 32)


def test_random_permutations_come_near_to_the_exact_test():
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=14), generator.normal(0.4, 1, 14)
    exact = permute_systems(_with_ones(a), _with_ones(b), mean, resamples=2**14).p
    assert permute_systems(_with_ones(a), _with_ones(b), mean, resamples=8000).p == pytest.approx(exact, abs=0.02)


@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_metrics_are_swapped_by_image_and_standardised(seed):
    generator = np.random.default_rng(seed)
    human = generator.integers(1, 5, 12).astype(float)
    a, b = human + generator.normal(size=12), 100 * generator.normal(size=12)
    image = np.repeat(np.arange(6), 2)
    z = [(values - values.mean()) / values.std() for values in (a, b)]
    observed = TAU_B(a, human) - TAU_B(b, human)
    differences = []
    for swap in product([False, True], repeat=6):
        rows = np.repeat(swap, 2)
        differences.append(TAU_B(np.where(rows, z[1], z[0]), human) - TAU_B(np.where(rows, z[0], z[1]), human))
    expected = np.mean(np.abs(differences) >= abs(observed) - 1e-12)
    found = permute_metrics(TAU_B, a, b, human, image)
    assert found.value == pytest.approx(observed)
    assert found.p == pytest.approx(expected)


def test_under_the_null_hypothesis_p_values_are_spread_evenly():
    generator = np.random.default_rng(1)
    p_values = []
    for seed in range(200):
        a, b = generator.normal(size=(2, 40))
        p_values.append(permute_systems(_with_ones(a), _with_ones(b), mean, resamples=200, seed=seed).p)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.10
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.06)


def test_a_clear_difference_is_found_and_no_difference_is_not():
    generator = np.random.default_rng(0)
    human = generator.integers(1, 5, 300).astype(float)
    good, noise = human + generator.normal(size=300), generator.normal(size=300)
    for test in (permute_metrics, bootstrap_metrics):
        assert test(PEARSON, good, noise, human, resamples=300).p < 0.02
        assert test(PEARSON, good, good, human, resamples=300).p == 1
    found = bootstrap_systems(_with_ones(good), _with_ones(good - 1), mean, resamples=300)
    assert found.low == pytest.approx(1)
    assert found.p < 0.02


def test_williams_test_agrees_with_its_definition_through_determinants():
    # Williams' T2 as Steiger (1980, equation 7) writes it, with |R| as a determinant.
    for r12, r13, r23, n in ((0.5, 0.3, 0.2, 50), (0.9, 0.85, 0.8, 20), (-0.2, 0.4, 0.1, 103)):
        determinant = np.linalg.det([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
        bar = (r12 + r13) / 2
        t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / (2 * (n - 1) / (n - 3) * determinant + bar**2 * (1 - r23) ** 3))
        assert williams(r12, r13, r23, n)[0] == pytest.approx(t)


def test_williams_test_holds_its_level_on_simulated_data():
    generator = np.random.default_rng(0)
    rejected = 0
    for _ in range(2000):
        target = generator.normal(size=60)
        x, y = target + generator.normal(size=60), target + generator.normal(size=60)
        r = np.corrcoef([target, x, y])
        rejected += williams(r[0, 1], r[0, 2], r[1, 2], 60)[1] < 0.05
    assert 0.038 <= rejected / 2000 <= 0.062


def test_williams_p_value_is_two_sided():
    # A standard table of Student's t has 2.086 for 20 degrees of freedom and 5% on both sides.
    r13 = 0.3
    low, high = r13, 0.99
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if williams(middle, r13, 0.2, 23)[0] < 2.086 else (low, middle)
    assert williams(low, r13, 0.2, 23)[1] == pytest.approx(0.05, abs=2e-4)


def test_a_metric_and_its_linear_image_do_not_differ_by_williams():
    generator = np.random.default_rng(0)
    for _ in range(100):
        target, x = generator.normal(size=(2, 50))
        y = 3 * x + 1
        assert williams(PEARSON(target, x), PEARSON(target, y), min(PEARSON(x, y), 1.0), 50)[1] == 1
    with pytest.raises(InputError, match="no data can have the correlations"):
        williams(0.9, -0.9, 0.9, 50)


def test_p_values_by_hand():
    # Three of four resamples above 0, one below: twice (1 + 1) of (4 + 1).
    found = bootstrapped_difference(0.5, np.array([-1.0, 1.0, 2.0, 3.0]))
    assert found.p == pytest.approx(0.8)
    assert bootstrapped_difference(0.5, np.array([1.0, 2.0, 3.0])).p == pytest.approx(0.5)
    # No random swap of thirty equal differences is as extreme as none or all, so that only the observed one counts.
    found = permute_systems(_with_ones([2] * 30), _with_ones([1] * 30), mean, resamples=99)
    assert found.p == pytest.approx(1 / 100)


def test_rows_of_one_image_are_swapped_together():
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(2, 40))
    single = permute_systems(_with_ones(a), _with_ones(b), mean, resamples=200)
    twice = permute_systems(_with_ones(np.repeat(a, 2)), _with_ones(np.repeat(b, 2)), mean, np.repeat(np.arange(40), 2), 200)
    assert twice.p == single.p
    assert permute_systems(_with_ones(np.repeat(a, 2)), _with_ones(np.repeat(b, 2)), mean, None, 200).p != single.p


def test_swaps_in_blocks_are_the_same_swaps(monkeypatch):
    generator = np.random.default_rng(0)
    a, b = _with_ones(generator.normal(size=50)), _with_ones(generator.normal(size=50))
    whole = permute_systems(a, b, mean, resamples=300)
    monkeypatch.setattr(significance, "_BLOCK_CELLS", 170)
    assert permute_systems(a, b, mean, resamples=300) == whole


def test_permutations_without_a_value_are_left_out():
    found = permute_metrics(TAU_B, [0, 0, 1, 1], [1, 1, 0, 0], [1, 2, 3, 4])
    assert found.p == pytest.approx(2 / 14)


def test_corrections_on_a_worked_example():
    p = [0.01, 0.04, 0.03, 0.005]
    assert bonferroni(p) == pytest.approx([0.04, 0.16, 0.12, 0.02])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert len(holm([])) == len(benjamini_hochberg([])) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_raw_and_the_bonferroni_values(p):
    corrected = holm(p)
    assert (corrected >= np.array(p) - 1e-12).all()
    assert (corrected <= bonferroni(p) + 1e-12).all()


def test_what_cannot_be_tested_is_said():
    with pytest.raises(InputError, match="same rows"):
        permute_systems(_with_ones([1, 2]), _with_ones([1, 2, 3]), mean)
    with pytest.raises(InputError, match="at least 4 points"):
        williams(0.5, 0.4, 0.3, 3)
    with pytest.raises(InputError, match="between 0 and 1"):
        holm([0.5, 2])

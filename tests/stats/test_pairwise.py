from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.errors import InputError
from caplens.stats import TAU_B, input_level, pairwise_accuracy, soft_pairwise_accuracy, system_level, tie_calibrated_accuracy

ROWS = st.lists(st.tuples(st.integers(0, 8).map(float), st.integers(1, 3).map(float), st.integers(0, 2)), min_size=2, max_size=14)


def _brute_accuracy(rows, epsilon):
    """Deutsch et al. (2023), equation for acc_eq, averaged over groups."""
    by_group = {}
    for metric, human, group in rows:
        by_group.setdefault(group, []).append((metric, human))
    accuracies = []
    for members in by_group.values():
        right = []
        for (m1, h1), (m2, h2) in combinations(members, 2):
            called = 0 if abs(m1 - m2) <= epsilon else np.sign(m1 - m2)
            right.append(called == np.sign(h1 - h2))
        if right:
            accuracies.append(np.mean(right))
    return np.mean(accuracies)


@given(ROWS, st.floats(0, 8))
def test_accuracy_and_its_calibration_are_those_of_trying_every_epsilon(rows, epsilon):
    metric, human, group = zip(*rows, strict=True)
    if len(set(group)) == len(group):
        return
    assert pairwise_accuracy(metric, human, group, epsilon).accuracy == pytest.approx(_brute_accuracy(rows, epsilon))
    gaps = {0.0} | {abs(a - b) for a in metric for b in metric}
    best = max(_brute_accuracy(rows, gap) for gap in gaps)
    found = tie_calibrated_accuracy(metric, human, group)
    assert found.accuracy == pytest.approx(best)
    assert _brute_accuracy(rows, found.epsilon) == pytest.approx(best)
    assert all(_brute_accuracy(rows, gap) < best - 1e-12 for gap in gaps if gap < found.epsilon)


def test_a_worked_example_of_tie_calibration():
    # People tie the first two; the metric separates them by 0.1 and the third by 0.8 and more.
    metric, human = [0.1, 0.2, 1.0], [1, 1, 2]
    assert pairwise_accuracy(metric, human).accuracy == pytest.approx(2 / 3)
    found = tie_calibrated_accuracy(metric, human)
    assert (found.accuracy, found.pairs, found.human_ties) == (1, 3, 1)
    assert found.epsilon == pytest.approx(0.1)


def test_groups_without_a_pair_are_an_error_when_there_is_no_other():
    with pytest.raises(InputError, match="no pair to compare"):
        tie_calibrated_accuracy([1, 2], [1, 2], ["a", "b"])


def test_system_level_ranks_means():
    metric = np.array([[1, 2, 3], [2, 3, 4], [5, 5, 5]])
    human = np.array([[1, 1, 1], [3, 3, 3], [2, 2, 2]])
    assert system_level(metric, human, TAU_B) == pytest.approx(1 / 3)
    assert input_level(metric, human, TAU_B) == pytest.approx(1 / 3)


def test_soft_pairwise_accuracy_is_1_for_people_themselves_and_near_0_for_their_opposite():
    generator = np.random.default_rng(0)
    human = generator.normal(size=(4, 50)) + 3 * np.arange(4)[:, None]
    assert soft_pairwise_accuracy(human, human) == 1
    assert soft_pairwise_accuracy(-human, human) < 0.02
    noise = generator.normal(size=(4, 50))
    assert 0.2 < soft_pairwise_accuracy(noise, human) < 0.8


def test_soft_pairwise_accuracy_of_two_systems_by_hand():
    # Sign patterns ++ +- -+ --. People: differences 1 and 1 sum to 2, 0, 0, -2; none is above 2 and one of four is equal,
    # so p is 1/8. The metric: 1 and -1 sum to 0, 2, -2, 0; one is above 0 and two are equal, so p is 1/4 + 1/4.
    found = soft_pairwise_accuracy([[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]], resamples=40_000)
    assert found == pytest.approx(1 - (1 / 2 - 1 / 8), abs=0.01)

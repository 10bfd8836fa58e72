"""Accuracies worked out by hand, and what holds for any scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.benchmarks import PreferenceBenchmark, PreferenceData, Trial
from caplens.benchmarks.preference import prefer
from caplens.data import Sample
from caplens.errors import InputError

SCORES = np.array([0.9, 0.5, 0.5, 0.1])


class Small(PreferenceBenchmark):
    name, protocols, folder, marker = "small", {"one": ""}, "small", "small"

    def __init__(self, *trials):
        self.trials = list(trials)

    def load(self, data, protocol, lang="en"):
        return PreferenceData([Sample(str(row), "a dog") for row in range(4)], self.trials)


def judged(benchmark, scores=SCORES, scored=None):
    loaded = benchmark.load(None, "one")
    known = np.ones(len(scores), dtype=bool) if scored is None else np.array(scored)
    return benchmark.judge(loaded, scores, known, 50, 0)


def test_right_is_strictly_greater_and_ties_are_reported():
    trials = [prefer("a", "x", 0, 1), prefer("a", "x", 1, 2), prefer("a", "y", 3, 0), prefer("b", "y", 1, 3)]
    found = judged(Small(*trials))
    # 0.9 > 0.5 is right, 0.5 = 0.5 a tie, 0.1 < 0.9 wrong.
    assert found["a"].value == pytest.approx(1 / 3)
    assert found["a"].ties == pytest.approx(1 / 3)
    assert (found["a"].points, found["b"].points) == (3, 1)
    assert found["b"].value == 1
    assert "mean" not in found

    class Averaged(Small):
        averaged, tie = True, 0.5

    found = judged(Averaged(*trials))
    assert found["a"].value == pytest.approx(0.5)
    assert found["mean"].value == pytest.approx(0.75)
    assert found["mean"].points == 4


def test_every_clause_of_a_trial_must_hold():
    both = Trial("triple", "x", (((0,), (1,)), ((1,), (3,))))
    broken = Trial("triple", "x", (((0,), (1,)), ((3,), (1,))))
    assert judged(Small(both, broken))["triple"].value == 0.5


def test_sides_with_several_rows_are_reduced():
    class BestAgainstLeast(Small):
        def worse(self, scores):
            return min(scores)

    # max(0.1, 0.5) is not above min(0.9, 0.5); max(0.9, 0.1) is.
    trials = [Trial("a", "x", (((3, 1), (0, 2)),)), Trial("a", "y", (((0, 3), (1, 2)),))]
    assert judged(BestAgainstLeast(*trials))["a"].value == 0.5


def test_trials_without_both_scores_are_left_out():
    trials = [prefer("a", "x", 0, 1), prefer("a", "x", 3, 0)]
    assert judged(Small(*trials), scored=[True, True, True, False])["a"].points == 1
    with pytest.raises(InputError, match="no comparison has a score on both sides"):
        judged(Small(*trials), scored=[False] * 4)


def test_comparisons_of_one_image_are_resampled_together():
    wins, losses = [prefer("a", "x", 0, 1)] * 20, [prefer("a", "y", 1, 0)] * 20
    # There are but two images, so that accuracies on resamples are 0, a half or 1.
    assert set(judged(Small(*wins, *losses))["a"].drawn.tolist()) == {0.0, 0.5, 1.0}


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.data())
def test_accuracy_ties_and_the_opposite_make_one(scores, data):
    rows = st.integers(0, len(scores) - 1)
    pairs = data.draw(st.lists(st.tuples(rows, rows), min_size=1, max_size=12))

    class Any(Small):
        def load(self, _, protocol, lang="en"):
            return PreferenceData([Sample(str(row), "a dog") for row in range(len(scores))], self.trials)

    forth, back = (
        judged(Any(*(prefer("a", str(a), *sides) for a, b in pairs for sides in [(a, b)[::step]])), np.array(scores))["a"]
        for step in (1, -1)
    )
    assert forth.ties == back.ties
    assert forth.value + back.value + forth.ties == pytest.approx(1)

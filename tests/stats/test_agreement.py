import numpy as np
import pytest
from extras import need
from hypothesis import given
from hypothesis import strategies as st

from caplens.errors import InputError
from caplens.stats import fleiss_kappa, krippendorff_alpha

NAN = float("nan")
# The reliability data that Krippendorff (2011, "Computing Krippendorff's Alpha-Reliability") works through.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def test_alpha_on_krippendorffs_own_example():
    found = {level: round(krippendorff_alpha(KRIPPENDORFF, level), 3) for level in ("nominal", "ordinal", "interval", "ratio")}
    assert found == {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}


@given(st.lists(st.lists(st.sampled_from([NAN, 1, 2, 3, 5]), min_size=3, max_size=3), min_size=3, max_size=10))
def test_alpha_equals_the_krippendorff_package(columns):
    peer = need("krippendorff")
    table = np.array(columns).T
    rated = ~np.isnan(table)
    pairable = rated.sum(axis=0) >= 2
    if len(np.unique(table[:, pairable][rated[:, pairable]])) < 2:
        return
    for level in ("nominal", "ordinal", "interval", "ratio"):
        expected = peer.alpha(reliability_data=table, level_of_measurement=level)
        assert krippendorff_alpha(table, level) == pytest.approx(expected, abs=1e-9)


def test_kappa_on_the_worked_example_of_fleiss():
    # Fleiss (1971): ten subjects, fourteen raters, five categories; kappa is 0.210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=0.0005)


def test_perfect_agreement_is_1():
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]]) == 1
    assert fleiss_kappa([[3, 0], [0, 3]]) == 1


def test_what_cannot_be_measured_is_said():
    with pytest.raises(InputError, match="no item has two ratings"):
        krippendorff_alpha([[1, NAN], [NAN, 2]])
    with pytest.raises(InputError, match="unknown level 'cardinal'"):
        krippendorff_alpha([[1, 2], [1, 3]], "cardinal")
    with pytest.raises(InputError, match="same number of raters"):
        fleiss_kappa([[1, 2], [3, 3]])

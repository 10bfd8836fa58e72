"""Sums that do not depend on the order in which numbers are added, so that the parts of a sum can be computed anywhere."""

from collections.abc import Iterable

import numpy as np

from caplens.arrays import Floats

_MANTISSA = 53
_LOW = 26
_UNIT = 1126
"""All finite numbers of 64 bits are whole multiples of 2 ** -1126."""


def exact_sum(values: Floats) -> int:
    """The sum of finite numbers without any rounding, in units of 2 ** -1126: such sums add up as integers."""
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, _MANTISSA).astype(np.int64)
    total = 0
    for exponent in np.unique(exponents).tolist():
        chosen = mantissas[exponents == exponent]
        # In two halves, the sum of as many as fit in memory stays within 64 bits.
        halves = (int((chosen >> _LOW).sum()) << _LOW) + int((chosen & ((1 << _LOW) - 1)).sum())
        total += halves << (exponent - _MANTISSA + _UNIT)
    return total


def nearest_float(total: int) -> float:
    """The number of 64 bits that is nearest to what `exact_sum` returned."""
    return total / (1 << _UNIT)


def exact_sums(statistics: Floats) -> list[int]:
    """The sum of each column."""
    return [exact_sum(column) for column in statistics.T]


def nearest_floats(totals: Iterable[int]) -> Floats:
    return np.array([nearest_float(total) for total in totals])


def column_sums(statistics: Floats) -> Floats:
    """The sum of each column, rounded once."""
    return nearest_floats(exact_sums(statistics))

"""`RowError`: why a caption has no score."""

from collections.abc import Sequence
from typing import NamedTuple


class RowError(NamedTuple):
    """Why a metric has no score for a caption."""

    reason: str
    unusable: bool = False
    """Whether something was given and cannot be used (an image that cannot be read), rather than missing."""


def common_reason(errors: Sequence[tuple[str, RowError]]) -> str:
    """The common reason, or `metric: reason` for each if they differ."""
    reasons = list(dict.fromkeys(error.reason for _, error in errors))
    if len(reasons) == 1:
        return reasons[0]
    return "; ".join(f"{name}: {error.reason}" for name, error in errors)

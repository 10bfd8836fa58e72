"""Text in tables that a spreadsheet would run as a formula, guarded with an apostrophe, and the guard taken off again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_FORMULA = re.compile("'*[=+\\-@\t\r]")
"""What a spreadsheet would run, or what has been guarded: guarding it once more keeps the two apart."""
_GUARDED = re.compile("'+[=+\\-@\t\r]")
_allowed: ContextVar[bool] = ContextVar("caplens_formulas", default=False)


@contextmanager
def formulas_allowed(allowed: bool = True) -> Iterator[None]:
    """Write text as it is while the block runs, if `allowed`."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def guarded(cell: Any) -> Any:
    """The cell; text that begins like a formula has an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and not _allowed.get() and _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell as it was before it was guarded."""
    return cell[1:] if _GUARDED.match(cell) else cell

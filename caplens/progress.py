"""Progress that any room may report and only the command shows.

Library code wraps its long loops in `track`. Nothing is shown unless someone has installed a display with `shown_by`; the command
installs a bar on the terminal. What takes long is also logged, to the logger `caplens`.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
logger = logging.getLogger("caplens")
_REPORT_INTERVAL = 0.1
"""Seconds between two reports, so that reporting costs nothing."""
Advance = Callable[[int, float], None]
"""Called with the number of items done and the amount of work done, in the unit of `total`."""
Display = Callable[[str, float | None], AbstractContextManager[Advance]]
"""Opens one bar: description and total amount of work (None when unknown)."""

kept: list[str] = []
"""What an interrupted command leaves that the next can use, in sentences."""
_display: ContextVar[Display | None] = ContextVar("caplens_progress", default=None)


@contextmanager
def shown_by(display: Display | None) -> Iterator[None]:
    """Show progress on `display` while the block runs."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def note_kept(what: str) -> None:
    """Remember what is kept if the command is interrupted from now on."""
    if what not in kept:
        kept.append(what)


def track(
    items: Iterable[T],
    description: str,
    total: float | None = None,
    done: Callable[[], float] | None = None,
    size: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Yield `items` while reporting them.

    `done` returns how much of `total` is done where that is not the number of items (bytes of a file, say); `size` returns how
    many things one item stands for.
    """
    display = _display.get()
    if display is None:
        yield from items
        return
    with display(description, total) as advance:
        count, reported = 0, 0.0
        for item in items:
            yield item
            count += size(item)
            if time.monotonic() - reported > _REPORT_INTERVAL:
                reported = time.monotonic()
                advance(count, done() if done else count)
        advance(count, done() if done else count)

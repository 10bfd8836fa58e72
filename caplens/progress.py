"""Progress that any room may report and only the command shows.

Library code wraps its long loops in `track` and tells what takes long with `note`. Nothing is shown unless someone has installed
a display with `shown_by`; the command installs a bar on the terminal.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
_EVERY = 0.1
"""Seconds between two reports, so that reporting costs nothing."""
Advance = Callable[[int, float], None]
"""Called with the number of items done and the amount of work done, in the unit of `total`."""
Display = Callable[[str, float | None], AbstractContextManager[Advance]]
"""Opens one bar: description and total amount of work (None when unknown)."""

Speak = Callable[[str], None]

_display: ContextVar[Display | None] = ContextVar("caplens_progress", default=None)
_speak: ContextVar[Speak | None] = ContextVar("caplens_notes", default=None)


@contextmanager
def shown_by(display: Display | None, speak: Speak | None = None) -> Iterator[None]:
    tokens = _display.set(display), _speak.set(speak)
    try:
        yield
    finally:
        _display.reset(tokens[0])
        _speak.reset(tokens[1])


def note(sentence: str) -> None:
    """Tell what is being done, where someone listens: what is loaded or downloaded, say."""
    speak = _speak.get()
    if speak is not None:
        speak(sentence)


def track(
    items: Iterable[T],
    description: str,
    total: float | None = None,
    done: Callable[[], float] | None = None,
    size: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Yield `items` while reporting them.

    `done` tells how much of `total` is behind us where that is not the number of items (bytes of a file, say);
    `size` tells how many things one item stands for.
    """
    display = _display.get()
    if display is None:
        yield from items
        return
    with display(description, total) as advance:
        count, shown = 0, 0.0
        for item in items:
            yield item
            count += size(item)
            if time.monotonic() - shown > _EVERY:
                shown = time.monotonic()
                advance(count, done() if done else count)
        advance(count, done() if done else count)

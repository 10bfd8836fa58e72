"""`Costly`: a value that takes long to compute, computed anew only now and then."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_QUICK = 0.2
"""Seconds; what takes less is never kept."""
_SHARE = 0.03
"""Of the time, the most that computing may take."""


class Costly(Generic[T]):
    """A value that is kept for thirty times as long as computing it took, so that asking for it often costs little."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._kept: list[T] = []
        self._until = 0.0

    def value(self) -> T:
        """The value; of a quick one always the present one."""
        with self._lock:
            if not self._kept or time.monotonic() >= self._until:
                start = time.monotonic()
                self._kept = [self._compute()]
                end = time.monotonic()
                self._until = end + (end - start) / _SHARE if end - start > _QUICK else end
            return self._kept[0]

    def forget(self) -> None:
        """Compute the value anew when it is asked for."""
        self._until = 0.0

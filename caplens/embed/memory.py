"""Memory for decoding images: all that are decoded at one time share a limit."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from caplens.data.limits import megabytes_in

VARIABLE = "CAPLENS_MAX_IMAGE_MB"
_DEFAULT = 448
_LARGE = 32 << 20


class MemoryBudget:
    """Memory that decoding images may take together: who needs more than is left waits for the others."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit, self._used = limit, 0
        self._changed = Condition()

    @property
    def limit(self) -> int:
        return megabytes_in(VARIABLE, _DEFAULT) if self._limit is None else self._limit

    @contextmanager
    def taken(self, needed: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._used + needed <= self.limit or not self._used)
            self._used += needed
        try:
            yield
        finally:
            if needed >= _LARGE:
                _give_back_memory()
            with self._changed:
                self._used -= needed
                self._changed.notify_all()


def _give_back_memory() -> None:
    """Return what is free to the system: the C library of Linux keeps it, for each thread."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)

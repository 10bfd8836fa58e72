"""Work done ahead of being needed, in order: what keeps the model and those who open images from waiting for each other."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

T = TypeVar("T")

READY = 3
"""Batches that wait for the model."""


def in_order(pool: Executor, tasks: Iterable[Callable[[], T]], depth: int) -> Iterator[T]:
    """The results of tasks in their order, with up to `depth` of them begun and not yet taken."""
    running: deque[Future[T]] = deque()
    for task in tasks:
        running.append(pool.submit(task))
        if len(running) >= depth:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, made by a thread of its own while earlier ones are used."""
    end: Any = object()
    pool = ThreadPoolExecutor(1)
    try:
        for item in in_order(pool, repeat(partial(next, items, end)), READY):
            if item is end:
                return
            yield item
    finally:
        pool.shutdown(cancel_futures=True)

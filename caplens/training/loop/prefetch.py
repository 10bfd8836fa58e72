"""Batches prepared ahead by worker processes, so that a GPU does not wait while captions are perturbed and tokenised."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torch.utils.data import DataLoader, Dataset

T = TypeVar("T")


class _StepDataset(Dataset[T], Generic[T]):
    def __init__(self, draw: Callable[[int], T]) -> None:
        self._draw = draw

    def __getitem__(self, step: int) -> T:
        return self._draw(step)


class Prefetcher(Generic[T]):
    """Calls `draw(step)` for consecutive steps, in worker processes ahead of time. With no workers, it is called on demand."""

    def __init__(self, draw: Callable[[int], T], steps: int, workers: int) -> None:
        self._draw, self._steps, self._workers = draw, steps, workers
        self._next = -1
        self._items: Iterator[T] = iter(())

    def __call__(self, step: int) -> T:
        if not self._workers:
            return self._draw(step)
        if step != self._next:
            steps = range(step, self._steps)
            loader: DataLoader[T] = DataLoader(
                _StepDataset(self._draw),
                batch_size=None,
                sampler=steps,
                num_workers=self._workers,
                prefetch_factor=4,
                collate_fn=_identity,
            )
            self._items = iter(loader)
        self._next = step + 1
        return next(self._items)


def _identity(item: T) -> T:
    return item

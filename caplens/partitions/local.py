"""Partitions scored by this process, one after the other."""

from collections.abc import Iterator, Sequence
from typing import Any

from caplens.embed.engine import Engine
from caplens.partitions.inputs import Partition
from caplens.partitions.scoring import PartitionJob, count_partition, score_partition


class LocalRunner:
    """What carries out a job on this machine.

    Attributes
    ----------
    retries
        How often a partition was scored again after a loss; here never.
    """

    retries = 0

    def __init__(self, engine: Engine | None) -> None:
        self._engine = engine

    def count(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[None]:
        """The first pass of CIDEr over some partitions."""
        for partition in partitions:
            count_partition(job, partition)
            yield

    def score(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[dict[str, Any]]:
        """The manifests of some partitions, in any order."""
        for partition in partitions:
            yield score_partition(job, partition, self._engine)

    def keep_vectors(self, job: PartitionJob) -> None:
        """Nothing to do: vectors are in the store."""

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

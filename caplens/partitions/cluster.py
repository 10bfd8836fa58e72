"""Partitions scored by the nodes of a Ray cluster: tasks read and score them, and owners of keys encode images and texts."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from caplens.backbones.load_options import BackboneSpec
from caplens.backbones.registry import load_backbone
from caplens.embed.engine import Engine
from caplens.embed.executors.owners import OwnersExecutor, start_owners
from caplens.embed.executors.ray import cause_of, connect, ray_library
from caplens.embed.store import Store
from caplens.errors import CaplensError, InputError, reason
from caplens.metrics.options import ScoringOptions
from caplens.partitions.folders import StorageFolder
from caplens.partitions.inputs import Partition
from caplens.partitions.scoring import PartitionJob, count_partition, score_partition
from caplens.progress import logger

_AHEAD = 2
"""Partitions that are given out for each processor: one is scored, and one waits."""
_MOST_LOSSES = 5
"""How often a partition may be lost with a process or node."""
_PAUSE = 0.5
"""Seconds after a loss, in which Ray learns which nodes are left."""


class RayRunner:
    """What carries out a job on a cluster.

    Attributes
    ----------
    retries
        How often a partition was lost with a process or node, and scored again.
    """

    def __init__(self, engine: Engine | None, options: ScoringOptions) -> None:
        self.retries = 0
        self._ray, self._address = ray_library(), options.ray_address
        connect(self._ray, self._address)
        self._owners: list[Any] = []
        self._spec: BackboneSpec | None = None
        if engine is not None:
            self._start(engine, options)

    def _start(self, engine: Engine, options: ScoringOptions) -> None:
        backbone = engine.backbone
        self._spec = backbone.spec
        if self._spec is None:
            raise InputError("a cluster opens a model by its name; a model that is a Python object cannot be sent to it.")
        if isinstance(options.store, Store):
            raise InputError("nodes of a cluster open their own stores: name a folder.")
        store = None if options.store is None else Path(options.store)
        self._owners = start_owners(self._spec, backbone.fingerprint, self._address, options.batch_size, options.workers, store)

    def count(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[None]:
        yield from self._spread(count_partition, job, partitions)

    def score(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[dict[str, Any]]:
        yield from self._spread(_score_with_owners, job, partitions, self._spec, self._owners)

    def keep_vectors(self, job: PartitionJob) -> None:
        """Write what the owners have beside the scores."""
        folder = StorageFolder(job.output)
        for owner in self._owners:
            for path, content in self._ray.get(owner.shards.remote()).items():
                folder.write(content, "vectors", *path.split("/"))

    def close(self) -> None:
        for owner in self._owners:
            self._ray.kill(owner)
        self._owners = []

    def _spread(self, work: Callable[..., Any], job: PartitionJob, partitions: Sequence[Partition], *more: Any) -> Iterator[Any]:
        """Give out partitions, no more at a time than the cluster takes, and yield what comes back."""
        ray = self._ray
        task = ray.remote(_in_folder).options(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")
        shared, folder = ray.put(job), str(Path.cwd())
        waiting = deque((partition, 0) for partition in partitions)
        running: dict[Any, tuple[Partition, int]] = {}
        while waiting or running:
            while waiting and len(running) < max(1, _AHEAD * int(ray.cluster_resources().get("CPU", 1))):
                partition, losses = waiting.popleft()
                running[task.remote(work, folder, shared, partition, *more)] = partition, losses
            (done,), _ = ray.wait(list(running), num_returns=1)
            partition, losses = running.pop(done)
            try:
                result = ray.get(done)
            except (ray.exceptions.RayTaskError, ray.exceptions.TaskCancelledError) as error:
                raise cause_of(error) from None
            except ray.exceptions.RayError as error:
                waiting.append((partition, self._lost(partition, losses, error)))
            else:
                yield result

    def _lost(self, partition: Partition, losses: int, error: Exception) -> int:
        self.retries += 1
        logger.warning(f"{partition}: lost with a process or node of the cluster, and done again ({reason(error)[:200]})")
        if losses >= _MOST_LOSSES:
            raise CaplensError(f"{partition}: was lost {losses + 1} times. Look at the logs of the cluster.")
        time.sleep(_PAUSE)
        return losses + 1


def _in_folder(work: Callable[..., Any], folder: str, job: PartitionJob, partition: Partition, *more: Any) -> Any:
    """On a node: relative paths mean what they mean to the caller."""
    with contextlib.suppress(OSError):
        os.chdir(folder)
    return work(job, partition, *more)


def _score_with_owners(
    job: PartitionJob, partition: Partition, spec: BackboneSpec | None, owners: Sequence[Any]
) -> dict[str, Any]:
    """On a node: score a partition with vectors from the owners."""
    if spec is None:
        return score_partition(job, partition, None)
    # Vectors are kept by their owners; here only as long as the partition needs them.
    engine = Engine(_backbone(spec), Store.temporary(), overlong=job.options.overlong, executor=OwnersExecutor(owners))
    try:
        return score_partition(job, partition, engine)
    finally:
        engine.close()


@lru_cache(1)
def _backbone(spec: BackboneSpec) -> Any:
    """The model without its weights, which only owners load."""
    return load_backbone(*spec)

"""What computes vectors: this machine, or the nodes of a cluster."""

from typing import Literal

from caplens.backbones.base import Backbone
from caplens.embed.executors.base import EncodedBatch, Executor
from caplens.embed.executors.local import LocalExecutor
from caplens.errors import InputError, option

__all__ = ["EncodedBatch", "Executor", "ExecutorName", "LocalExecutor", "open_executor"]

ExecutorName = Literal["local", "ray"]


def open_executor(
    name: ExecutorName, backbone: Backbone, ray_address: str | None, batch_size: int | None, workers: int | None
) -> Executor:
    """The executor of this name, with a model."""
    if name == "ray":
        from caplens.embed.executors.ray import RayExecutor

        return RayExecutor(backbone, ray_address, batch_size, workers)
    if name != "local":
        raise InputError(f"what computes vectors is 'local' or 'ray', not {name!r}.")
    if ray_address is not None:
        raise InputError(f"a cluster has an address, and this machine none: add {option('executor', 'ray')}.")
    return LocalExecutor(backbone, batch_size, workers)

"""What computes vectors: the executor of this machine, and others that spread the work."""

from caplens.embed.executors.base import EncodedBatch, Executor
from caplens.embed.executors.local import LocalExecutor

__all__ = ["EncodedBatch", "Executor", "LocalExecutor"]

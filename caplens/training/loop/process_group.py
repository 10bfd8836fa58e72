"""Training in several processes, each on its share of every batch; one process is a group of one.

    torchrun --nproc-per-node 2 -m caplens train ...

All processes draw the same batch. Each encodes its own rows and gathers the vectors of the others before the loss, so that a
contrastive batch is as large as all processes can hold together. Each has the gradient of the full loss with respect to its own
rows; the sum over processes is the gradient of one process with the full batch.
"""

import atexit
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint


class ProcessGroup:
    """The processes that `torchrun` started, or this one alone."""

    def __init__(self, device: str = "cpu") -> None:
        self.size, self.rank = (int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", "1"), ("RANK", "0")))
        if self.size > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
            atexit.register(distributed.destroy_process_group)

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def encode(self, forward: Callable[[Any], Tensor], items: Sequence[Any] | Tensor, at_once: int = 0) -> Tensor:
        """The vectors of all items, with gradients for this process's share of them.

        With `at_once`, the activations of at most that many items are held in memory: they are computed again in the backward
        pass (gradient caching, Gao et al. 2021).
        """
        bounds = [len(items) * rank // self.size for rank in range(self.size + 1)]
        share = items[bounds[self.rank] : bounds[self.rank + 1]]
        chunks = [share[start : start + at_once] for start in range(0, len(share), at_once)] if at_once else [share]
        if len(chunks) > 1 and torch.is_grad_enabled():
            vectors = torch.cat([_checkpointed(forward, chunk) for chunk in chunks])
        else:
            vectors = torch.cat([forward(chunk) for chunk in chunks])
        if self.size == 1:
            return vectors
        longest = max(end - start for start, end in pairwise(bounds))
        padded = torch.zeros((longest, *vectors.shape[1:]), dtype=vectors.dtype, device=vectors.device)
        padded[: len(vectors)] = vectors.detach()
        gathered = [torch.empty_like(padded) for _ in range(self.size)]
        distributed.all_gather(gathered, padded)
        parts = [part[: bounds[rank + 1] - bounds[rank]] for rank, part in enumerate(gathered)]
        return torch.cat([*parts[: self.rank], vectors, *parts[self.rank + 1 :]])

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradient of each parameter with its sum over all processes."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.flatten() for parameter in parameters if parameter.grad is not None])
        distributed.all_reduce(flat)
        start = 0
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.grad.copy_(flat[start : start + parameter.numel()].view_as(parameter))
            start += parameter.numel()

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.size > 1:
            distributed.barrier()


def own_device(device: str) -> str:
    """The GPU of this process where several run on one machine and no GPU was chosen; otherwise `device`."""
    single_process = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if single_process or device not in ("auto", "cuda") or not torch.cuda.is_available():
        return device
    gpu = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    torch.cuda.set_device(gpu)
    return gpu


def _checkpointed(forward: Callable[[Any], Tensor], chunk: Any) -> Tensor:
    vectors: Tensor = checkpoint(forward, chunk, use_reentrant=False)
    return vectors

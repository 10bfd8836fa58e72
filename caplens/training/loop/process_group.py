"""Processes that train together, each on its rows of every batch; one process is a group of one.

    torchrun --nproc-per-node 2 -m caplens train ...

All draw the same batch. Each encodes its own rows, and gets the others' vectors before the loss, so that a contrastive batch is
as large as all of them can hold. Each then has the gradient of the whole loss by its own rows, and the sum of these is what one
process with the whole batch would have.
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
        """The vectors of all items, with gradients to this process's share of them.

        With `at_once`, no more items than that are held in memory with all that their gradients need: they are encoded again
        when their gradients are wanted (gradient caching, Gao et al. 2021).
        """
        bounds = [len(items) * rank // self.size for rank in range(self.size + 1)]
        mine = items[bounds[self.rank] : bounds[self.rank + 1]]
        pieces = [mine[start : start + at_once] for start in range(0, len(mine), at_once)] if at_once else [mine]
        if len(pieces) > 1 and torch.is_grad_enabled():
            made = torch.cat([_again(forward, piece) for piece in pieces])
        else:
            made = torch.cat([forward(piece) for piece in pieces])
        if self.size == 1:
            return made
        most = max(end - start for start, end in pairwise(bounds))
        padded = torch.zeros((most, *made.shape[1:]), dtype=made.dtype, device=made.device)
        padded[: len(made)] = made.detach()
        others = [torch.empty_like(padded) for _ in range(self.size)]
        distributed.all_gather(others, padded)
        parts = [other[: bounds[rank + 1] - bounds[rank]] for rank, other in enumerate(others)]
        return torch.cat([*parts[: self.rank], made, *parts[self.rank + 1 :]])

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Put the sum over all processes in the place of each parameter's gradient."""
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
        """Until all are here."""
        if self.size > 1:
            distributed.barrier()


def own_device(device: str) -> str:
    """The GPU of this process, where several were started on a machine and none was named."""
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if alone or device not in ("auto", "cuda") or not torch.cuda.is_available():
        return device
    mine = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    torch.cuda.set_device(mine)
    return mine


def _again(forward: Callable[[Any], Tensor], piece: Any) -> Tensor:
    made: Tensor = checkpoint(forward, piece, use_reentrant=False)
    return made

"""The checkpoint of a stage that is being trained: its networks, their averages, and the state of the optimizer."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from caplens.data.replacing import replacing
from caplens.errors import CaplensError, reason

_HASH = "sha256"


class Ema:
    """Copies of networks whose weights are an exponential moving average of the trained ones.

    `weight` is the decay of the average; with 0 the weights are those of the last step.
    """

    def __init__(self, networks: Mapping[str, nn.Module], weight: float) -> None:
        self.networks = {name: deepcopy(network).requires_grad_(False).eval() for name, network in networks.items()}
        self._weight = weight
        self._averaged, self._trained = (
            [tensor for name in networks for tensor in copies[name].state_dict().values() if tensor.is_floating_point()]
            for copies in (self.networks, networks)
        )

    @torch.no_grad()
    def update(self, step: int) -> None:
        # The first weights are random, so the average forgets them sooner.
        weight = min(self._weight, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._averaged, self._trained, 1 - weight)

    @contextmanager
    def in_their_place(self) -> Iterator[None]:
        """Give the trained networks the averaged weights while the block runs."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for averaged, trained in zip(self._averaged, self._trained, strict=True):
            copy = averaged.clone()
            averaged.copy_(trained)
            trained.copy_(copy)

    def state(self) -> dict[str, dict[str, Tensor]]:
        return {name: network.state_dict() for name, network in self.networks.items()}

    def load(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
        for name, network in self.networks.items():
            network.load_state_dict(state[name])


@dataclass
class Best:
    """The best validation value so far, its step, and the weights at that step."""

    value: float = -math.inf
    step: int = 0
    state: dict[str, dict[str, Tensor]] | None = None


def checkpoint_of(folder: Path, stage: str) -> Path:
    """The file of an unfinished stage."""
    return folder / f"{stage}.checkpoint.pt"


def save_checkpoint(
    path: Path, step: int, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, ema: Ema, best: Best
) -> None:
    state = {
        "step": step,
        "networks": {name: network.state_dict() for name, network in networks.items()},
        "averages": ema.state(),
        "optimizer": optimizer.state_dict(),
        "best": [best.value, best.step, best.state],
    }
    state[_HASH] = _hash_of(state)
    with replacing(path) as temporary:
        try:
            torch.save(state, temporary)
        except RuntimeError as error:
            # PyTorch raises this where the disk is full.
            raise OSError(f"{reason(error)}; is the disk full?") from None


def _hash_of(state: object) -> str:
    """The SHA-256 of all that a checkpoint holds; PyTorch does not check what it reads."""
    digest = hashlib.sha256()

    def add(value: object) -> None:
        if isinstance(value, Mapping):
            digest.update(f"mapping {len(value)}".encode())
            for key, item in value.items():
                digest.update(repr(key).encode())
                add(item)
        elif isinstance(value, list | tuple):
            digest.update(f"list {len(value)}".encode())
            for item in value:
                add(item)
        elif isinstance(value, Tensor):
            digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        else:
            digest.update(repr(value).encode())

    add(state)
    return digest.hexdigest()


def load_checkpoint(path: Path, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, ema: Ema, best: Best) -> int:
    """Load a checkpoint; returns its step."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        # Checkpoints of caplens 0.1 have no hash.
        expected = state.pop(_HASH, None)
        if expected is not None and _hash_of(state) != expected:
            raise ValueError("it is damaged")
        for name, network in networks.items():
            network.load_state_dict(state["networks"][name])
        ema.load(state["averages"])
        optimizer.load_state_dict(state["optimizer"])
        best.value, best.step, best.state = state["best"]
        return int(state["step"])
    except Exception as error:
        # Depending on the damage, PyTorch raises RuntimeError, EOFError, KeyError, UnpicklingError and others.
        raise CaplensError(
            f"{path}: this checkpoint does not fit ({reason(error)}). Remove it to start this stage again."
        ) from None

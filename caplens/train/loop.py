"""The loop of every training stage: seeded, averaged over time, and able to go on where it was stopped.

What a step draws depends on the seed and the step's number alone, so a run that was killed and resumed makes the same model
as one that was not.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from caplens.data.files import replacing
from caplens.errors import CaplensError, reason
from caplens.progress import note, track

_SAVED_EVERY = 60.0
"""Seconds between two checkpoints."""
_REPORTED_EVERY = 200
"""Steps between two looks at the loss, each of which makes a GPU wait."""


@dataclass(frozen=True)
class Schedule:
    """`rate` is reached after `warmup` of the steps and falls to zero as a cosine; `average` is the weight of the past."""

    steps: int
    rate: float
    decay: float
    warmup: float = 0.05
    average: float = 0.998

    def factor(self, step: int) -> float:
        begin = max(1, round(self.steps * self.warmup))
        if step < begin:
            return (step + 1) / begin
        return 0.5 * (1 + math.cos(math.pi * (step - begin) / max(1, self.steps - begin)))


@dataclass(frozen=True)
class Workplace:
    """Where a stage is trained. With `half`, mostly in bfloat16."""

    folder: Path
    device: str
    seed: int
    half: bool


class Average:
    """Networks whose weights are a running mean of those in training."""

    def __init__(self, networks: Mapping[str, nn.Module], weight: float) -> None:
        self.networks = {name: deepcopy(network).requires_grad_(False).eval() for name, network in networks.items()}
        self._weight = weight
        self._mine, self._theirs = (
            [value for name in networks for value in some[name].state_dict().values() if value.is_floating_point()]
            for some in (self.networks, networks)
        )

    @torch.no_grad()
    def follow(self, step: int) -> None:
        # Early on the past is random weights, and counts for less.
        weight = min(self._weight, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._mine, self._theirs, 1 - weight)


def fit(
    name: str,
    networks: Mapping[str, nn.Module],
    loss_at: Callable[[int, Generator], Tensor],
    schedule: Schedule,
    workplace: Workplace,
    faster: Sequence[str] = (),
    times: float = 1.0,
) -> dict[str, nn.Module]:
    """Train `networks` on `loss_at(step, chance)`; gives back their averages. Those in `faster` learn at `times` the rate."""
    checkpoint, kind = checkpoint_of(workplace.folder, name), workplace.device.partition(":")[0]
    for network in networks.values():
        network.train()
    optimizer = torch.optim.AdamW(_groups(networks, schedule, faster, times), fused=kind == "cuda")
    average = Average(networks, schedule.average)
    first = _resume(checkpoint, networks, optimizer, average) if checkpoint.is_file() else 0
    if first:
        note(f"{name}: going on at step {first} of {schedule.steps}.")
    chance = Generator(workplace.device)
    weights = [parameter for network in networks.values() for parameter in network.parameters()]
    saved, began, loss = time.monotonic(), time.monotonic(), torch.tensor(0.0)
    for step in track(range(first, schedule.steps), name, schedule.steps - first):
        chance.manual_seed(workplace.seed * 1_000_003 + step)
        torch.manual_seed(workplace.seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * schedule.factor(step)
        with torch.autocast(kind, torch.bfloat16, enabled=workplace.half):
            loss = loss_at(step, chance)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        optimizer.step()
        average.follow(step)
        due = time.monotonic() - saved > _SAVED_EVERY
        if due or step + 1 == schedule.steps or (step + 1) % _REPORTED_EVERY == 0:
            if not math.isfinite(loss.item()):
                raise CaplensError(f"{name}: the loss is no number at step {step + 1}; try a smaller rate.")
            note(f"{name}: step {step + 1} of {schedule.steps}, loss {loss.item():.4f}, {time.monotonic() - began:.0f} s.")
        if due:
            _save(checkpoint, step + 1, networks, optimizer, average)
            saved = time.monotonic()
    return average.networks


def checkpoint_of(folder: Path, stage: str) -> Path:
    """Where a stage that is not finished is kept."""
    return folder / f"{stage}.checkpoint.pt"


def _groups(networks: Mapping[str, nn.Module], schedule: Schedule, faster: Sequence[str], times: float) -> list[dict[str, Any]]:
    """Biases, norms and other vectors are not decayed."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, network in networks.items():
        rate = schedule.rate * (times if name in faster else 1.0)
        for parameter in network.parameters():
            groups.setdefault((rate, schedule.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return [{"params": some, "lr": rate, "rate": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]


def _save(path: Path, step: int, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, average: Average) -> None:
    state = {
        "step": step,
        "networks": {name: network.state_dict() for name, network in networks.items()},
        "averages": {name: network.state_dict() for name, network in average.networks.items()},
        "optimizer": optimizer.state_dict(),
    }
    with replacing(path) as temporary:
        torch.save(state, temporary)


def _resume(path: Path, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, average: Average) -> int:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, network in networks.items():
            network.load_state_dict(state["networks"][name])
            average.networks[name].load_state_dict(state["averages"][name])
        optimizer.load_state_dict(state["optimizer"])
        return int(state["step"])
    except Exception as error:
        # Depending on the damage, PyTorch raises RuntimeError, EOFError, KeyError, UnpicklingError and others.
        raise CaplensError(
            f"{path}: this checkpoint does not fit ({reason(error)}). Remove it to begin this stage anew."
        ) from None


def shuffled(count: int, size: int, seed: int, device: str) -> Callable[[int], Tensor]:
    """Step -> the numbers of a batch: every one of `count` comes once before any comes again."""
    per_epoch = max(1, count // size)
    chance = Generator(device)
    order: dict[int, Tensor] = {}

    def at(step: int) -> Tensor:
        epoch, place = divmod(step, per_epoch)
        if epoch not in order:
            order.clear()
            order[epoch] = torch.randperm(count, generator=chance.manual_seed(seed * 7919 + epoch), device=device)
        return order[epoch][place * size : (place + 1) * size]

    return at


def batches(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))

"""The loop of every training stage: seeded, averaged over time, and able to go on where it was stopped.

What a step draws depends on the seed and the step's number alone, so a run that was killed and resumed makes the same model
as one that was not. Networks learn where their parameters want gradients; the rest of them stays as it is.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from caplens.data.files import replacing
from caplens.errors import CaplensError, reason
from caplens.progress import note, track
from caplens.train.log import Log
from caplens.train.team import Team

_SAVED_EVERY = 60.0
"""Seconds between two checkpoints."""
_LOGGED_EVERY = 25
"""Steps between two looks at the loss, each of which makes a GPU wait."""
_TOLD_EVERY = 200
Losses = Tensor | Iterable[Tensor]
"""What a step makes small. Of several, each is made and gone before the next: their gradients add up."""


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
class Validation:
    """How good the networks are on what they do not learn from: the best are kept."""

    measure: Callable[[], float]
    """More is better."""
    every: int
    patience: int
    """Training ends after this many steps without a better value; 0: never."""


@dataclass(frozen=True)
class Workplace:
    """Where a stage is trained. With `half`, mostly in bfloat16."""

    folder: Path
    device: str
    seed: int
    half: bool
    team: Team = field(default_factory=Team)
    tensorboard: bool = False


class Average:
    """Networks whose weights are a running mean of those in training; with a weight of 0 of the past, the same ones."""

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

    @contextmanager
    def in_their_place(self) -> Iterator[None]:
        """The networks in training have the mean's weights meanwhile."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for mine, theirs in zip(self._mine, self._theirs, strict=True):
            kept = mine.clone()
            mine.copy_(theirs)
            theirs.copy_(kept)

    def state(self) -> dict[str, dict[str, Tensor]]:
        return {name: network.state_dict() for name, network in self.networks.items()}

    def load(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
        for name, network in self.networks.items():
            network.load_state_dict(state[name])


@dataclass
class Best:
    """The best networks so far, by validation."""

    value: float = -math.inf
    step: int = 0
    state: dict[str, dict[str, Tensor]] | None = None


def fit(
    name: str,
    networks: Mapping[str, nn.Module],
    loss_at: Callable[[int, Generator], Losses],
    schedule: Schedule,
    workplace: Workplace,
    faster: Sequence[str] = (),
    times: float = 1.0,
    validation: Validation | None = None,
) -> dict[str, nn.Module]:
    """Train `networks` on `loss_at(step, chance)`; gives back their averages, the best where there is a validation.

    Those in `faster` learn at `times` the rate.
    """
    checkpoint, kind, team = checkpoint_of(workplace.folder, name), workplace.device.partition(":")[0], workplace.team
    for network in networks.values():
        # What is partly frozen runs as it will be used: batch norm and dropout would make another network of it.
        network.train(all(parameter.requires_grad for parameter in network.parameters()))
    weights = [parameter for network in networks.values() for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(_groups(networks, schedule, faster, times), fused=kind == "cuda")
    average, best = Average(networks, schedule.average), Best()
    first = _resume(checkpoint, networks, optimizer, average, best) if checkpoint.is_file() else 0
    if first:
        note(f"{name}: going on at step {first} of {schedule.steps}.")
    team.wait()
    log = Log(workplace.folder, name, first, workplace.tensorboard) if team.leads else None
    chance = Generator(workplace.device)
    saved = began = time.monotonic()
    for step in track(range(first, schedule.steps), name, schedule.steps - first):
        chance.manual_seed(workplace.seed * 1_000_003 + step)
        torch.manual_seed(workplace.seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * schedule.factor(step)
        optimizer.zero_grad(set_to_none=True)
        loss = _backward(loss_at, step, chance, torch.autocast(kind, torch.bfloat16, enabled=workplace.half))
        team.add_gradients(weights)
        nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        optimizer.step()
        average.follow(step)
        done, last = step + 1, step + 1 == schedule.steps
        found: dict[str, float] = {}
        if validation is not None and (done % validation.every == 0 or last):
            with average.in_their_place(), _as_used(networks.values()), torch.no_grad():
                found["validation"] = validation.measure()
            if found["validation"] > best.value:
                best.value, best.step, best.state = found["validation"], done, deepcopy(average.state())
        enough = validation is not None and 0 < validation.patience <= done - best.step
        due = time.monotonic() - saved > _SAVED_EVERY
        if due or last or enough or found or done % _LOGGED_EVERY == 0:
            if not math.isfinite(loss.item()):
                raise CaplensError(f"{name}: the loss is no number at step {done}; try a smaller rate.")
            seconds = time.monotonic() - began
            if log is not None:
                log.write(done, loss=loss.item(), rate=schedule.rate * schedule.factor(step), seconds=round(seconds, 1), **found)
            if due or last or found or done % _TOLD_EVERY == 0:
                judged = f", validation {found['validation']:.4f}" if found else ""
                note(f"{name}: step {done} of {schedule.steps}, loss {loss.item():.4f}{judged}, {seconds:.0f} s.")
        if enough:
            note(f"{name}: no better since step {best.step}; stopping.")
            break
        if due:
            if team.leads:
                _save(checkpoint, done, networks, optimizer, average, best)
            saved = time.monotonic()
    if best.state is not None:
        average.load(best.state)
    return average.networks


@contextmanager
def _as_used(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Networks without dropout, meanwhile."""
    modes = [(network, network.training) for network in networks]
    for network, _ in modes:
        network.eval()
    try:
        yield
    finally:
        for network, training in modes:
            network.train(training)


def _backward(loss_at: Callable[[int, Generator], Losses], step: int, chance: Generator, precision: torch.autocast) -> Tensor:
    """Gradients of all losses of a step; gives back their sum."""
    with precision:
        made = loss_at(step, chance)
    if isinstance(made, Tensor):
        made.backward()  # type: ignore[no-untyped-call]
        return made.detach()
    losses, total = iter(made), torch.zeros(())
    while True:
        with precision:
            loss = next(losses, None)
        if loss is None:
            return total
        loss.backward()
        total = total.to(loss.device) + loss.detach()


def checkpoint_of(folder: Path, stage: str) -> Path:
    """Where a stage that is not finished is kept."""
    return folder / f"{stage}.checkpoint.pt"


def _groups(networks: Mapping[str, nn.Module], schedule: Schedule, faster: Sequence[str], times: float) -> list[dict[str, Any]]:
    """Biases, norms and other vectors are not decayed."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, network in networks.items():
        rate = schedule.rate * (times if name in faster else 1.0)
        for parameter in filter(lambda some: some.requires_grad, network.parameters()):
            groups.setdefault((rate, schedule.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return [{"params": some, "lr": rate, "rate": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]


def _save(
    path: Path, step: int, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, average: Average, best: Best
) -> None:
    state = {
        "step": step,
        "networks": {name: network.state_dict() for name, network in networks.items()},
        "averages": average.state(),
        "optimizer": optimizer.state_dict(),
        "best": [best.value, best.step, best.state],
    }
    with replacing(path) as temporary:
        try:
            torch.save(state, temporary)
        except RuntimeError as error:
            # PyTorch's word for a full disk.
            raise OSError(f"{reason(error)}; is the disk full?") from None


def _resume(path: Path, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, average: Average, best: Best) -> int:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, network in networks.items():
            network.load_state_dict(state["networks"][name])
        average.load(state["averages"])
        optimizer.load_state_dict(state["optimizer"])
        best.value, best.step, best.state = state["best"]
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

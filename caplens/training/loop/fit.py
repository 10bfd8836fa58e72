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
from caplens.progress import logger, track
from caplens.training.loop.log import Log
from caplens.training.loop.process_group import ProcessGroup

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
class RunContext:
    """Where a stage is trained. With `half`, mostly in bfloat16."""

    folder: Path
    device: str
    seed: int
    half: bool
    group: ProcessGroup = field(default_factory=ProcessGroup)
    tensorboard: bool = False


class Ema:
    """Networks whose weights are a running mean of those in training; with a weight of 0 of the past, the same ones."""

    def __init__(self, networks: Mapping[str, nn.Module], weight: float) -> None:
        self.networks = {name: deepcopy(network).requires_grad_(False).eval() for name, network in networks.items()}
        self._weight = weight
        self._mine, self._theirs = (
            [value for name in networks for value in some[name].state_dict().values() if value.is_floating_point()]
            for some in (self.networks, networks)
        )

    @torch.no_grad()
    def update(self, step: int) -> None:
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
    context: RunContext,
    faster: Sequence[str] = (),
    times: float = 1.0,
    validation: Validation | None = None,
) -> dict[str, nn.Module]:
    """Train `networks` on `loss_at(step, rng)`; returns their averages, the best where there is a validation.

    Those in `faster` learn at `times` the rate.
    """
    stage = _Stage(name, networks, schedule, context, faster, times, validation)
    first = stage.resume()
    for step in track(range(first, schedule.steps), name, schedule.steps - first):
        loss = stage.take_step(step, loss_at)
        done = step + 1
        measured = stage.validate(done)
        stalled = stage.is_stalled(done)
        stage.report(done, loss, measured, stalled=stalled)
        if stalled:
            logger.info(f"{name}: no better since step {stage.best.step}; stopping.")
            break
        stage.save_if_due(done)
    return stage.finished()


class _Stage:
    """The state of one stage of training: networks, optimizer, averages, and the best weights so far."""

    def __init__(
        self,
        name: str,
        networks: Mapping[str, nn.Module],
        schedule: Schedule,
        context: RunContext,
        faster: Sequence[str],
        times: float,
        validation: Validation | None,
    ) -> None:
        self._name, self._networks, self._schedule, self._context = name, networks, schedule, context
        self._validation = validation
        self._checkpoint = checkpoint_of(context.folder, name)
        self._device_type = context.device.partition(":")[0]
        for network in networks.values():
            # What is partly frozen runs as it will be used: batch norm and dropout would make another network of it.
            network.train(all(parameter.requires_grad for parameter in network.parameters()))
        self._weights = [
            parameter for network in networks.values() for parameter in network.parameters() if parameter.requires_grad
        ]
        groups = _groups(networks, schedule, faster, times)
        self._optimizer = torch.optim.AdamW(groups, fused=self._device_type == "cuda")
        self._ema, self.best = Ema(networks, schedule.average), Best()
        self._rng = Generator(context.device)
        self._log: Log | None = None
        self._saved = self._began = time.monotonic()

    def resume(self) -> int:
        """Load the checkpoint, if there is one; returns the step to begin with."""
        first = 0
        if self._checkpoint.is_file():
            first = _resume(self._checkpoint, self._networks, self._optimizer, self._ema, self.best)
            logger.info(f"{self._name}: resuming at step {first} of {self._schedule.steps}.")
        self._context.group.wait()
        if self._context.group.is_main:
            self._log = Log(self._context.folder, self._name, first, self._context.tensorboard)
        self._saved = self._began = time.monotonic()
        return first

    def take_step(self, step: int, loss_at: Callable[[int, Generator], Losses]) -> Tensor:
        seed = self._context.seed * 1_000_003 + step
        self._rng.manual_seed(seed)
        torch.manual_seed(seed)
        for group in self._optimizer.param_groups:
            group["lr"] = group["rate"] * self._schedule.factor(step)
        self._optimizer.zero_grad(set_to_none=True)
        precision = torch.autocast(self._device_type, torch.bfloat16, enabled=self._context.half)
        loss = _backward(loss_at, step, self._rng, precision)
        self._context.group.add_gradients(self._weights)
        nn.utils.clip_grad_norm_(self._weights, 1.0, foreach=True)
        self._optimizer.step()
        self._ema.update(step)
        return loss

    def validate(self, done: int) -> dict[str, float]:
        """Measure the averages where that is due, and keep them if they are the best."""
        validation = self._validation
        if validation is None or (done % validation.every and done != self._schedule.steps):
            return {}
        with self._ema.in_their_place(), _as_used(self._networks.values()), torch.no_grad():
            value = validation.measure()
        if value > self.best.value:
            self.best.value, self.best.step, self.best.state = value, done, deepcopy(self._ema.state())
        return {"validation": value}

    def is_stalled(self, done: int) -> bool:
        return self._validation is not None and 0 < self._validation.patience <= done - self.best.step

    def report(self, done: int, loss: Tensor, measured: dict[str, float], *, stalled: bool) -> None:
        """Write the log now and then; a loss that is not a number is an error."""
        worth_telling = self._is_due() or done == self._schedule.steps or bool(measured)
        if not (worth_telling or stalled or done % _LOGGED_EVERY == 0):
            return
        if not math.isfinite(loss.item()):
            raise CaplensError(f"{self._name}: the loss is not a number at step {done}; try a smaller rate.")
        seconds = time.monotonic() - self._began
        if self._log is not None:
            rate = self._schedule.rate * self._schedule.factor(done - 1)
            self._log.write(done, loss=loss.item(), rate=rate, seconds=round(seconds, 1), **measured)
        if worth_telling or done % _TOLD_EVERY == 0:
            judged = f", validation {measured['validation']:.4f}" if measured else ""
            steps = self._schedule.steps
            logger.info(f"{self._name}: step {done} of {steps}, loss {loss.item():.4f}{judged}, {seconds:.0f} s.")

    def _is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._saved > _SAVED_EVERY

    def save_if_due(self, done: int) -> None:
        if self._is_due():
            if self._context.group.is_main:
                _save(self._checkpoint, done, self._networks, self._optimizer, self._ema, self.best)
            self._saved = time.monotonic()

    def finished(self) -> dict[str, nn.Module]:
        """The averages, or the best of them."""
        if self.best.state is not None:
            self._ema.load(self.best.state)
        return self._ema.networks


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


def _backward(loss_at: Callable[[int, Generator], Losses], step: int, rng: Generator, precision: torch.autocast) -> Tensor:
    """Gradients of all losses of a step; gives back their sum."""
    with precision:
        made = loss_at(step, rng)
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
    path: Path, step: int, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, ema: Ema, best: Best
) -> None:
    state = {
        "step": step,
        "networks": {name: network.state_dict() for name, network in networks.items()},
        "averages": ema.state(),
        "optimizer": optimizer.state_dict(),
        "best": [best.value, best.step, best.state],
    }
    with replacing(path) as temporary:
        try:
            torch.save(state, temporary)
        except RuntimeError as error:
            # PyTorch's word for a full disk.
            raise OSError(f"{reason(error)}; is the disk full?") from None


def _resume(path: Path, networks: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, ema: Ema, best: Best) -> int:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, network in networks.items():
            network.load_state_dict(state["networks"][name])
        ema.load(state["averages"])
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
    rng = Generator(device)
    order: dict[int, Tensor] = {}

    def at(step: int) -> Tensor:
        epoch, place = divmod(step, per_epoch)
        if epoch not in order:
            order.clear()
            order[epoch] = torch.randperm(count, generator=rng.manual_seed(seed * 7919 + epoch), device=device)
        return order[epoch][place * size : (place + 1) * size]

    return at


def batches(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))

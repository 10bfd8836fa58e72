"""The training loop of every stage: seeded, with an exponential moving average of the weights, and resumable.

The random numbers of a step depend only on the seed and the step, so that a run that is killed and resumed draws the same batches
as one that is not. Only parameters that require gradients are trained.
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

from caplens.errors import CaplensError
from caplens.progress import logger, track
from caplens.training.loop.checkpoint import Best, Ema, checkpoint_of, load_checkpoint, save_checkpoint
from caplens.training.loop.log import Log
from caplens.training.loop.process_group import ProcessGroup

_CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints."""
_LOG_STEPS = 25
"""Steps between two lines of the log file. Reading the loss makes a GPU wait."""
_MESSAGE_STEPS = 200
"""Steps between two messages to the user."""
Losses = Tensor | Iterable[Tensor]
"""The loss of a step, or several. Each of several is computed and freed before the next; their gradients add up."""


@dataclass(frozen=True)
class Schedule:
    """Linear warmup to `rate`, then cosine decay to zero, or a constant rate."""

    steps: int
    rate: float
    decay: float
    """Weight decay of AdamW."""
    warmup: float = 0.05
    """Share of the steps."""
    average: float = 0.998
    """Decay of the moving average of the weights."""
    clip: float = 1.0
    """The largest norm of the gradients; 0: any."""
    constant: bool = False
    """Whether the rate stays as it is after the warmup."""
    root_after: int = 0
    """Steps after which the rate falls with the root of the step, as for T5; 0: it does not."""
    adafactor: bool = False
    """Whether the optimizer is Adafactor (Shazeer and Stern 2018) instead of AdamW."""

    def factor(self, step: int) -> float:
        """The learning rate at this step, relative to `rate`."""
        warmup_steps = max(1, round(self.steps * self.warmup))
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        if self.root_after:
            return min(1.0, math.sqrt(self.root_after / (step + 1)))
        if self.constant:
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(1, self.steps - warmup_steps)))


@dataclass(frozen=True)
class Validation:
    """Measures the networks on held-out data; the best weights are kept."""

    measure: Callable[[], float]
    """Higher is better."""
    every: int
    """Steps between two measurements."""
    patience: int
    """Training stops after this many steps without a better value; 0: never."""


@dataclass(frozen=True)
class RunContext:
    """Where and how a stage is trained."""

    folder: Path
    device: str
    seed: int
    half: bool
    """Train in bfloat16 (autocast)."""
    group: ProcessGroup = field(default_factory=ProcessGroup)
    tensorboard: bool = False


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
    """Train `networks` in place on `loss_at(step, rng)`, from their checkpoint if there is one.

    Networks named in `faster` train at `times` the learning rate. Returns copies with the averaged weights: the best ones by
    validation, or the last.
    """
    stage = _Stage(name, networks, schedule, context, faster, times, validation)
    first = stage.resume()
    for step in track(range(first, schedule.steps), name, schedule.steps - first):
        loss = stage.take_step(step, loss_at)
        done = step + 1
        measured = stage.validate(done)
        stalled = stage.is_stalled(done)
        # Decided once, so that a checkpoint is never written of weights whose loss was not checked.
        due = stage.is_checkpoint_due()
        stage.report(done, loss, measured, due=due, stalled=stalled)
        if stalled:
            logger.info(f"{name}: no better since step {stage.best.step}; stopping.")
            break
        if due:
            stage.save(done)
    return stage.averaged_networks()


class _Stage:
    """The state of one stage of training: networks, optimizer, moving average, and the best weights so far."""

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
            # A partly frozen network runs in eval mode: batch norm and dropout would change its frozen part.
            network.train(all(parameter.requires_grad for parameter in network.parameters()))
        self._weights = [
            parameter for network in networks.values() for parameter in network.parameters() if parameter.requires_grad
        ]
        groups = _parameter_groups(networks, schedule, faster, times)
        self._optimizer: torch.optim.Optimizer
        if schedule.adafactor:
            self._optimizer = torch.optim.Adafactor(groups)
        else:
            self._optimizer = torch.optim.AdamW(groups, fused=self._device_type == "cuda")
        self._ema, self.best = Ema(networks, schedule.average), Best()
        self._rng = Generator(context.device)
        self._log: Log | None = None
        self._last_checkpoint = self._start = time.monotonic()

    def resume(self) -> int:
        """Load the checkpoint, if there is one; returns the first step to take."""
        first = 0
        if self._checkpoint.is_file():
            first = load_checkpoint(self._checkpoint, self._networks, self._optimizer, self._ema, self.best)
            logger.info(f"{self._name}: resuming at step {first} of {self._schedule.steps}.")
        self._context.group.wait()
        if self._context.group.is_main:
            self._log = Log(self._context.folder, self._name, first, self._context.tensorboard)
        self._last_checkpoint = self._start = time.monotonic()
        return first

    def take_step(self, step: int, loss_at: Callable[[int, Generator], Losses]) -> Tensor:
        """One step of the optimizer; returns the loss."""
        seed = self._context.seed * 1_000_003 + step
        self._rng.manual_seed(seed)
        torch.manual_seed(seed)
        for group in self._optimizer.param_groups:
            group["lr"] = group["rate"] * self._schedule.factor(step)
        self._optimizer.zero_grad(set_to_none=True)
        precision = torch.autocast(self._device_type, torch.bfloat16, enabled=self._context.half)
        loss = _backward(loss_at, step, self._rng, precision)
        self._context.group.add_gradients(self._weights)
        if self._schedule.clip:
            nn.utils.clip_grad_norm_(self._weights, self._schedule.clip, foreach=True)
        self._optimizer.step()
        self._ema.update(step)
        return loss

    def validate(self, done: int) -> dict[str, float]:
        """Measure the averaged weights where that is due, and keep them if they are the best; returns the value, for the log."""
        validation = self._validation
        if validation is None or (done % validation.every and done != self._schedule.steps):
            return {}
        with self._ema.in_their_place(), _eval_mode(self._networks.values()), torch.no_grad():
            value = validation.measure()
        if value > self.best.value:
            self.best.value, self.best.step, self.best.state = value, done, deepcopy(self._ema.state())
        return {"validation": value}

    def is_stalled(self, done: int) -> bool:
        """Whether validation has not improved for as long as its patience."""
        return self._validation is not None and 0 < self._validation.patience <= done - self.best.step

    def is_checkpoint_due(self) -> bool:
        return time.monotonic() - self._last_checkpoint > _CHECKPOINT_SECONDS

    def report(self, done: int, loss: Tensor, measured: dict[str, float], *, due: bool, stalled: bool) -> None:
        """Log the step where that is due; raises an error if the loss is not a number."""
        steps = self._schedule.steps
        has_news = due or done == steps or bool(measured)
        if not (has_news or stalled or done % _LOG_STEPS == 0):
            return
        if not math.isfinite(loss.item()):
            raise CaplensError(f"{self._name}: the loss is not a number at step {done}; try a smaller rate.")
        seconds = time.monotonic() - self._start
        if self._log is not None:
            rate = self._schedule.rate * self._schedule.factor(done - 1)
            self._log.write(done, loss=loss.item(), rate=rate, seconds=round(seconds, 1), **measured)
        if has_news or done % _MESSAGE_STEPS == 0:
            validation = f", validation {measured['validation']:.4f}" if measured else ""
            logger.info(f"{self._name}: step {done} of {steps}, loss {loss.item():.4f}{validation}, {seconds:.0f} s.")

    def save(self, done: int) -> None:
        """Write a checkpoint."""
        if self._context.group.is_main:
            save_checkpoint(self._checkpoint, done, self._networks, self._optimizer, self._ema, self.best)
        self._last_checkpoint = time.monotonic()

    def averaged_networks(self) -> dict[str, nn.Module]:
        """Networks with the averaged weights: the best by validation, or the last."""
        if self.best.state is not None:
            self._ema.load(self.best.state)
        return self._ema.networks


@contextmanager
def _eval_mode(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Put networks in eval mode while the block runs."""
    modes = [(network, network.training) for network in networks]
    for network, _ in modes:
        network.eval()
    try:
        yield
    finally:
        for network, training in modes:
            network.train(training)


def _backward(loss_at: Callable[[int, Generator], Losses], step: int, rng: Generator, precision: torch.autocast) -> Tensor:
    """Compute the gradients of all losses of a step; returns the sum of the losses."""
    with precision:
        losses = loss_at(step, rng)
    if isinstance(losses, Tensor):
        losses.backward()  # type: ignore[no-untyped-call]
        return losses.detach()
    remaining, total = iter(losses), torch.zeros(())
    while True:
        with precision:
            loss = next(remaining, None)
        if loss is None:
            return total
        loss.backward()
        total = total.to(loss.device) + loss.detach()


def _parameter_groups(
    networks: Mapping[str, nn.Module], schedule: Schedule, faster: Sequence[str], times: float
) -> list[dict[str, Any]]:
    """Parameters by learning rate and weight decay; biases, norms and other vectors are not decayed."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, network in networks.items():
        rate = schedule.rate * (times if name in faster else 1.0)
        for parameter in network.parameters():
            if parameter.requires_grad:
                groups.setdefault((rate, schedule.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return [
        {"params": parameters, "lr": rate, "rate": rate, "weight_decay": decay} for (rate, decay), parameters in groups.items()
    ]


def shuffled(count: int, size: int, seed: int, device: str) -> Callable[[int], Tensor]:
    """A function from the step to the indices of its batch: each of `count` items appears once per epoch, in random order."""
    per_epoch = max(1, count // size)
    rng = Generator(device)
    order: dict[int, Tensor] = {}

    def at(step: int) -> Tensor:
        epoch, batch = divmod(step, per_epoch)
        if epoch not in order:
            order.clear()
            order[epoch] = torch.randperm(count, generator=rng.manual_seed(seed * 7919 + epoch), device=device)
        return order[epoch][batch * size : (batch + 1) * size]

    return at


def batches(count: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` items that cover `count` items."""
    return (slice(start, start + size) for start in range(0, count, size))

"""One training run: its folder remembers what is trained there, keeps what is finished, and goes on where it was stopped."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor, nn

from caplens.data.files import replacing
from caplens.errors import InputError, option, reason
from caplens.training.loop.fit import Losses, RunContext, Schedule, Validation, checkpoint_of, fit
from caplens.training.loop.process_group import ProcessGroup


@dataclass
class Run:
    """One training run: what it does, and where its files go."""

    folder: Path
    settings: Mapping[str, Any]
    """The recipe, as it is noted in the folder."""
    seed: int
    device: str
    data_hashes: Mapping[str, str] = field(default_factory=dict)
    """Of what it is trained on."""
    tensorboard: bool = False
    half: bool = False
    """Train mostly in bfloat16."""

    @cached_property
    def group(self) -> ProcessGroup:
        return ProcessGroup(self.device)

    def begin(self) -> None:
        """Note in the folder what is trained there, or check that it is the same as before."""
        path = self.folder / "run.json"
        trained_on = {"given": dict(self.data_hashes)} if self.data_hashes else {}
        run = {"recipe": self.settings, "seed": self.seed, **trained_on}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.folder}: this folder cannot be made ({error.strerror}). Choose another with {option('out')}."
            ) from None
        if path.is_file() and not _is_same_run(path, run):
            raise InputError(
                f"{self.folder}: a run with another recipe, seed or data was begun here. Choose another folder with"
                f" {option('out')}."
            )
        if self.group.is_main:
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(run, indent=1), encoding="utf-8")

    def stage(self, name: str, network: nn.Module, train: Callable[[], Mapping[str, Tensor]]) -> None:
        """Fill `network` with the weights of a stage: those of a file that is there, or newly trained ones."""
        path = self.folder / f"{name}.safetensors"
        if not path.is_file():
            weights = {key: value.detach().float().cpu().clone().contiguous() for key, value in train().items()}
            if self.group.is_main:
                _write(path, weights)
            self.group.wait()
        if self.group.is_main:
            checkpoint_of(self.folder, name).unlink(missing_ok=True)
        try:
            network.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError) as error:
            raise InputError(f"{path}: these weights do not fit ({reason(error)}). Remove the file to train them anew.") from None
        network.to(self.device).eval()

    def fit(
        self,
        name: str,
        networks: Mapping[str, nn.Module],
        loss_at: Callable[[int, Generator], Losses],
        schedule: Schedule,
        faster: Sequence[str] = (),
        times: float = 1.0,
        validation: Validation | None = None,
    ) -> dict[str, nn.Module]:
        context = RunContext(self.folder, self.device, self.seed, self.half, self.group, self.tensorboard)
        return fit(name, networks, loss_at, schedule, context, faster, times, validation)


def _is_same_run(path: Path, run: Mapping[str, Any]) -> bool:
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return bool(before == json.loads(json.dumps(run)))


def _write(path: Path, weights: dict[str, Tensor]) -> None:
    with replacing(path) as temporary:
        try:
            save_file(weights, temporary)
        except SafetensorError as error:
            # Its word for a full disk.
            raise OSError(f"{reason(error)}; is the disk full?") from None

"""One training run: its folder remembers what is trained there, keeps what is finished, and goes on where it was stopped."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor, nn

from caplens.data.files import replacing
from caplens.errors import InputError, reason
from caplens.train.loop import Losses, Schedule, Validation, Workplace, checkpoint_of, fit
from caplens.train.recipe import Config
from caplens.train.team import Team


@dataclass
class Run:
    """One training run: what it does, and where its files go."""

    folder: Path
    config: Config
    seed: int
    device: str
    given: Mapping[str, str] = field(default_factory=dict)
    """Hashes of what it is trained on."""
    tensorboard: bool = False

    @cached_property
    def team(self) -> Team:
        return Team(self.device)

    def begin(self) -> None:
        """Note in the folder what is trained there, or see that it is the same as before."""
        about = self.folder / "run.json"
        trained_on = {"given": self.given} if self.given else {}
        mine = json.dumps({"recipe": self.config, "seed": self.seed, **trained_on}, indent=1)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: this folder cannot be made ({error.strerror}). Choose another for --out.") from None
        if about.is_file() and about.read_text(encoding="utf-8") != mine:
            raise InputError(
                f"{self.folder}: another recipe or seed was begun here, or other data. Choose another folder for --out."
            )
        if self.team.leads:
            with replacing(about) as temporary:
                temporary.write_text(mine, encoding="utf-8")

    def stage(self, name: str, network: nn.Module, train: Callable[[], Mapping[str, Tensor]]) -> None:
        """Fill `network` with the weights of a stage: those of a file that is there, or newly trained ones."""
        path = self.folder / f"{name}.safetensors"
        if not path.is_file():
            weights = {key: value.detach().float().cpu().clone().contiguous() for key, value in train().items()}
            if self.team.leads:
                _write(path, weights)
            self.team.wait()
        if self.team.leads:
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
        workplace = Workplace(self.folder, self.device, self.seed, self.config["data"]["half"], self.team, self.tensorboard)
        return fit(name, networks, loss_at, schedule, workplace, faster, times, validation)


def _write(path: Path, weights: dict[str, Tensor]) -> None:
    with replacing(path) as temporary:
        try:
            save_file(weights, temporary)
        except SafetensorError as error:
            # Its word for a full disk.
            raise OSError(f"{reason(error)}; is the disk full?") from None

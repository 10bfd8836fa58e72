"""One training run and its folder: what is trained there, the finished stages, and the checkpoint of an unfinished one."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor, nn, uint8

from caplens.data.replacing import replacing
from caplens.data.temporary import temporary_file
from caplens.errors import InputError, option, reason
from caplens.progress import logger, note_kept
from caplens.training.loop.checkpoint import checkpoint_of
from caplens.training.loop.fit import Losses, RunContext, Schedule, Validation, fit
from caplens.training.loop.process_group import ProcessGroup

RUN = "run.json"
"""The file with the settings of a run, in its folder."""
_WRITTEN = ("model", "log.jsonl", "vocabulary.tsv", "*.safetensors", "*.checkpoint.pt")
"""What runs write, and would replace, in their folders."""
_HASH = "sha256"
"""The key of the weights' hash in the metadata of their file."""


@dataclass
class Run:
    """One training run: its settings, and the folder of its files."""

    folder: Path
    settings: Mapping[str, Any]
    """The recipe, as it is written to `run.json`."""
    seed: int
    device: str
    data_hashes: Mapping[str, str] = field(default_factory=dict)
    """Name -> hash of the model and data that the run starts from."""
    tensorboard: bool = False
    half: bool = False
    """Train in bfloat16 (autocast)."""

    @cached_property
    def group(self) -> ProcessGroup:
        return ProcessGroup(self.device)

    def check(self) -> None:
        """Raise an error if the folder cannot be that of this run."""
        claim_folder(self.folder, self._about, writes=False)

    @property
    def _about(self) -> dict[str, Any]:
        trained_on = {"given": dict(self.data_hashes)} if self.data_hashes else {}
        return {"recipe": self.settings, "seed": self.seed, **trained_on}

    def begin(self) -> None:
        """Write `run.json` to the folder, or check that the folder belongs to the same run."""
        claim_folder(self.folder, self._about, writes=self.group.is_main)
        if self.group.is_main:
            note_kept(f"The same command goes on from the last checkpoint in {self.folder}.")

    def stage(self, name: str, network: nn.Module, train: Callable[[], Mapping[str, Tensor]]) -> None:
        """Load the weights of a stage into `network`, from its file; where there is none, train them first."""
        path = self.folder / f"{name}.safetensors"
        if not path.is_file():
            weights = {key: value.detach().float().cpu().clone().contiguous() for key, value in train().items()}
            if self.group.is_main:
                _write(path, weights)
            self.group.wait()
        if self.group.is_main:
            checkpoint_of(self.folder, name).unlink(missing_ok=True)
        try:
            network.load_state_dict(_read(path))
        except (SafetensorError, RuntimeError) as error:
            raise InputError(
                f"{path}: these weights do not fit ({reason(error)}). Remove the file to train them again."
            ) from None
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


def claim_folder(folder: Path, settings: Mapping[str, Any], *, written: Sequence[str] = _WRITTEN, writes: bool = True) -> None:
    """Write the settings of a run to `run.json` in its folder.

    Raises an error if the folder belongs to another run, or if there is something in the place of what a run writes.
    """
    path = folder / RUN
    foreign = next((file for pattern in written for file in sorted(folder.glob(pattern))), None)
    if foreign is not None and not path.is_file():
        raise InputError(
            f"{folder}: this folder holds {foreign.name}, which would be replaced, but no run of caplens. Choose another with"
            f" {option('out', 'FOLDER')}."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: this folder cannot be created ({error.strerror}). Choose another with {option('out', 'FOLDER')}."
        ) from None
    if path.is_file() and not _is_same_run(path, settings):
        raise InputError(
            f"{folder}: this folder holds a run with another recipe, seed or data. Choose another with {option('out', 'FOLDER')}."
        )
    if writes and not path.is_file():
        _write_new(path, json.dumps(settings, indent=1))
        if not _is_same_run(path, settings):
            raise InputError(f"{folder}: another run has just begun here. Choose another with {option('out', 'FOLDER')}.")


def _write_new(path: Path, content: str) -> None:
    """Write a file unless there is one: of two runs that begin together, one gets the folder."""
    try:
        temporary = temporary_file(path.parent, path.name)
        try:
            temporary.write_text(content, encoding="utf-8")
            _link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from None


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        logger.debug(f"{path}: another process was first.")
    except OSError:
        # A file system without hard links.
        os.replace(temporary, path)


def _read(path: Path) -> dict[str, Tensor]:
    """The weights of a stage; an error if they are damaged, or not numbers."""
    with safe_open(path, "pt") as file:
        expected = (file.metadata() or {}).get(_HASH)
    weights = load_file(path)
    # Files of caplens 0.1 have no hash.
    if expected is not None and _hash_of(weights) != expected:
        raise InputError(f"{path}: these weights are damaged. Remove the file to train them again.")
    if not all(bool(value.isfinite().all()) for value in weights.values()):
        raise InputError(f"{path}: a weight is not a number. Remove the file to train it again, with a smaller rate.")
    return weights


def _hash_of(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().view(-1).view(uint8).numpy().tobytes())
    return digest.hexdigest()


def _is_same_run(path: Path, run: Mapping[str, Any]) -> bool:
    try:
        previous = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return bool(previous == json.loads(json.dumps(run)))


def _write(path: Path, weights: dict[str, Tensor]) -> None:
    with replacing(path) as temporary:
        try:
            save_file(weights, temporary, {_HASH: _hash_of(weights)})
        except SafetensorError as error:
            # safetensors raises this where the disk is full.
            raise OSError(f"{reason(error)}; is the disk full?") from None

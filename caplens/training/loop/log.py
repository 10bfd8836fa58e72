"""The log of a training run: a file of JSON lines, and TensorBoard events on request."""

import json
from pathlib import Path
from typing import Any

from caplens.data.replacing import is_special, replacing
from caplens.errors import InputError
from caplens.libraries import require

LOG = "log.jsonl"


class Log:
    """`log.jsonl` in a run's folder: stage, step, loss, rate, seconds, and the validation value."""

    def __init__(self, folder: Path, stage: str, first: int, tensorboard: bool = False) -> None:
        """Open the log, and drop its lines after step `first`: these steps run again after the last checkpoint."""
        self._path, self._stage = folder / LOG, stage
        if is_special(self._path):
            raise InputError(f"{self._path}: this is a pipe or a device, not a file. Remove it.")
        if self._path.is_file():
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            valid_lines = [line for line in lines if not self._is_stale(line, first)]
            with replacing(self._path) as temporary:
                temporary.write_text("".join(valid_lines), encoding="utf-8")
        self._writer = None
        if tensorboard:
            require("tensorboard", "TensorBoard logging", "tensorboard")
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first)

    def _is_stale(self, line: str, first: int) -> bool:
        try:
            entry = json.loads(line)
            return bool(entry["stage"] == self._stage and entry["step"] > first)
        except (ValueError, KeyError, TypeError):
            # A line that was only partly written when the run was killed.
            return True

    def write(self, step: int, **values: float) -> None:
        entry: dict[str, Any] = {"stage": self._stage, "step": step, **values}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise InputError(
                f"{self._path}: cannot be written ({error.strerror}). Free some disk space, then run the command again."
            ) from None
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{self._stage}/{name}", value, step)
            self._writer.flush()

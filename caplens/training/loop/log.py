"""What a run tells while it trains: a line of JSON now and then, and the same for TensorBoard where that is wanted."""

import json
from pathlib import Path
from typing import Any

from caplens.data.files import replacing
from caplens.errors import InputError
from caplens.libraries import require

LOG = "log.jsonl"


class Log:
    """`log.jsonl` of a run's folder: stage, step, loss, rate, seconds, and what validation found."""

    def __init__(self, folder: Path, stage: str, first: int, tensorboard: bool = False) -> None:
        """Lines of steps from `first` on are of a run that was stopped after its last checkpoint; they will come again."""
        self._path, self._stage = folder / LOG, stage
        if self._path.is_file():
            lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if not self._comes_again(line, first)]
            with replacing(self._path) as temporary:
                temporary.write_text("".join(kept), encoding="utf-8")
        self._board = None
        if tensorboard:
            require("tensorboard", "--tensorboard", "tensorboard")
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=first)

    def _comes_again(self, line: str, first: int) -> bool:
        try:
            entry = json.loads(line)
            return bool(entry["stage"] == self._stage and entry["step"] > first)
        except (ValueError, KeyError, TypeError):
            # The end of a line that was being written when the run was killed.
            return True

    def write(self, step: int, **values: float) -> None:
        entry: dict[str, Any] = {"stage": self._stage, "step": step, **values}
        try:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise InputError(
                f"{self._path}: cannot be written ({error.strerror}). Make room and run the command again."
            ) from None
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{self._stage}/{name}", value, step)
            self._board.flush()

"""The log of a training run: loss and validation by step, for each stage."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from caplens.data.files import Place, Source
from caplens.data.formats.json_document import parse_json
from caplens.errors import InputError
from caplens.results.base import Content, Result, ResultRow
from caplens.results.table import Cell, Table

_BESIDE = ("step", "seconds", "rate")
"""Columns that are not measures."""
LogLine = Mapping[str, float]


@dataclass(frozen=True)
class TrainingLog(Result):
    """Stage -> lines, each with `step`, `loss` and whatever else was measured."""

    kind = "training-log"

    stages: dict[str, list[LogLine]]
    warnings: list[str] = field(default_factory=list)

    @property
    def measures(self) -> list[str]:
        lines = (line for stage in self.stages.values() for line in stage)
        return list(dict.fromkeys(key for line in lines for key in line if key not in _BESIDE))

    def tables(self) -> list[Table]:
        measures = self.measures
        rows: list[list[Cell]] = [
            [stage, int(lines[-1]["step"]), *(_last(lines, name) for name in measures)] for stage, lines in self.stages.items()
        ]
        return [Table(["stage", "last step", *measures], rows, "Where it ended", digits=4)]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per line of the log; what a line did not measure is None."""
        columns = dict.fromkeys(key for lines in self.stages.values() for line in lines for key in line)
        return ({"stage": stage, **columns, **line} for stage, lines in self.stages.items() for line in lines)

    def content(self) -> dict[str, Any]:
        return {"stages": {stage: [dict(line) for line in lines] for stage, lines in self.stages.items()}}

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        return cls({stage: list(lines) for stage, lines in content["stages"].items()})


def _last(lines: Sequence[LogLine], name: str) -> float | None:
    return next((line[name] for line in reversed(lines) if name in line), None)


def read_training_log(path: Path) -> TrainingLog:
    """The `log.jsonl` of a run."""
    stages: dict[str, list[LogLine]] = {}
    with Source(path) as source:
        lines = source.text().splitlines()
    for line_number, line in enumerate(lines, 1):
        entry = _parsed(line)
        if entry is None:
            if line_number == len(lines) > 1 and not _is_json(line):
                # The end of a line that was being written when the run was stopped.
                break
            raise InputError(
                f"{Place(path, line_number)}: this is not a line of a training log, which has a stage and numbers for step and"
                " loss. Rows of scores are no result that can be read back; write the result to a .json file for that."
            )
        stages.setdefault(entry[0], []).append(entry[1])
    if not stages:
        raise InputError(f"{path}: the training log is empty.")
    return TrainingLog(stages)


def _parsed(line: str) -> tuple[str, LogLine] | None:
    """The stage and the numbers of a line, or None if it is not a line of a log."""
    try:
        row = parse_json(line, Place(Path()))
        values = {key: float(value) for key, value in row.items() if key != "stage"}
    except (InputError, ValueError, TypeError, AttributeError, OverflowError):
        return None
    complete = "stage" in row and {"step", "loss"} <= values.keys() and bool(np.isfinite(list(values.values())).all())
    return (str(row["stage"]), values) if complete else None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True

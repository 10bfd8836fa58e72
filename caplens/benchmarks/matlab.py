"""MATLAB files, read by a process of its own: a damaged one can crash the library that reads them.

The process gets the content on standard input and answers in JSON: cells, structures and arrays as lists.
"""

import io
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from caplens.data.files import Source
from caplens.errors import InputError
from caplens.programs import program_of

_SECONDS = 60
_MOST_CELLS = 2_000_000
_MEMORY = 3 << 30
"""Bytes that the process may take: a damaged file can ask for any number."""


def read_matlab(path: Path, names: Sequence[str]) -> list[Any]:
    """The variables of these names."""
    with Source(path) as source:
        content = source.content()
    try:
        done = subprocess.run(
            program_of("caplens.benchmarks.matlab", "convert", *names),
            input=content,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _damaged(path, f"reading it takes more than {_SECONDS} seconds") from None
    if done.returncode:
        raise _damaged(path, "reading it crashes")
    answer = json.loads(done.stdout)
    if isinstance(answer, str):
        raise _damaged(path, answer)
    variables: list[Any] = answer
    return variables


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: this is not the expected MATLAB file, or it is damaged ({why}). Get it again.")


def convert() -> None:
    """Answer with the variables whose names are the arguments, or with the reason why there are none."""
    from scipy.io import loadmat, whosmat

    _limit_memory()
    answer: list[Any] | str
    names = sys.argv[1:]
    try:
        file = io.BytesIO(sys.stdin.buffer.read())
        for name, shape, _ in whosmat(file):
            if name in names:
                _check_size(math.prod(shape))
        content = loadmat(file, variable_names=names)
        answer = [_plain(content[name]) for name in names]
    except Exception as error:
        # scipy raises errors of many types for damaged files.
        answer = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(answer))


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _check_size(cells: int) -> None:
    if cells > _MOST_CELLS:
        raise ValueError(f"an array has {cells:,} cells")


def _plain(value: Any) -> Any:
    """Arrays, cells and structures as lists, text as text."""
    if isinstance(value, np.ndarray):
        _check_size(value.size)
        return [_plain(entry) for entry in value]
    if isinstance(value, np.void):
        return [_plain(field) for field in value.tolist()] if value.dtype.names else None
    return value.item() if isinstance(value, np.generic) else value

"""Programs of our own that run beside the caller, so that a crash or a large memory is theirs."""

import sys
from pathlib import Path


def program_of(module: str, function: str, *arguments: str) -> list[str]:
    """The command that calls a function of caplens in a process of its own.

    It imports caplens from where this file is, and nothing from the current folder (`-P`), which may be a stranger's.
    """
    folder = str(Path(__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {folder!r}); from {module} import {function}; {function}()"
    return [sys.executable, "-P", "-W", "ignore", "-c", program, *arguments]

"""Where caplens keeps what it can make again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$CAPLENS_CACHE`, else `caplens` in the user's cache."""
    chosen = os.environ.get("CAPLENS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "caplens"

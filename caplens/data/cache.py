"""The folder for cached files, which caplens can always compute or download again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$CAPLENS_CACHE` if set, else `caplens` in the user's cache folder."""
    configured = os.environ.get("CAPLENS_CACHE")
    if configured:
        return Path(configured).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "caplens"

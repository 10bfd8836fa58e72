"""The folder for cached files, which caplens can always compute or download again."""

import os
from pathlib import Path

from caplens.data.files import expanded


def cache_folder() -> Path:
    """`$CAPLENS_CACHE` if set, else `caplens` in the user's cache folder."""
    configured = os.environ.get("CAPLENS_CACHE")
    return expanded(configured) if configured else expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "caplens"

"""Temporary files and folders that say whose they are, so that what a killed process left behind is swept at the next start."""

import hashlib
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

_SUFFIX = ".tmp"
_LONGEST_PREFIX = 40
"""Characters of a file's name in that of its temporary file, so that a long name stays one that file systems take."""


def temporary_file(folder: Path, name: str) -> Path:
    """A new, empty file in `folder` for what will become the file `name`; what dead processes left there of it is swept."""
    handle, path = tempfile.mkstemp(_SUFFIX, _prefix(folder, name), folder)
    # mkstemp creates files that only their owner can read; results get the user's default permissions.
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)
    os.close(handle)
    return Path(path)


def temporary_folder(folder: Path, name: str) -> Path:
    """A new folder in `folder` for what will become the folder `name`; what dead processes left there of it is swept."""
    path = Path(tempfile.mkdtemp(_SUFFIX, _prefix(folder, name), folder))
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(0o777 & ~umask)
    return path


def new_scratch_folder() -> Path:
    """A folder for the files of this process, which the caller removes."""
    return temporary_folder(Path(tempfile.gettempdir()), "caplens")


def _prefix(folder: Path, name: str) -> str:
    """`.NAME.HOST-PID-`, after removing what dead processes of this machine left under such a name."""
    host = hashlib.sha256(f"{socket.gethostname()} {_process_numbers()}".encode()).hexdigest()[:8]
    start = f".{name[:_LONGEST_PREFIX]}.{host}-"
    with os.scandir(folder) as entries:
        abandoned = [entry.path for entry in entries if _is_abandoned(entry.name, start)]
    for path in abandoned:
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            shutil.rmtree(path, ignore_errors=True)
        else:
            # Of another user, it is not ours to remove.
            with suppress(OSError):
                Path(path).unlink()
    return f"{start}{os.getpid()}-"


def _process_numbers() -> str:
    """What the numbers of processes mean: in each container they begin anew."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _is_abandoned(name: str, start: str) -> bool:
    """Whether a file is one of ours whose process is dead. A number that another process has got since keeps the file."""
    if not name.startswith(start) or not name.endswith(_SUFFIX):
        return False
    process = name.removeprefix(start).partition("-")[0]
    if os.name != "posix" or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False

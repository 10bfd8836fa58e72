"""Temporary files and folders that say whose they are, so that what a killed process left behind is swept at the next start."""

import hashlib
import os
import re
import shutil
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

_SUFFIX = ".tmp"
_LONGEST_PREFIX = 40
"""Characters of a file's name in that of its temporary file, so that a long name stays one that file systems take."""


def temporary_file(folder: Path, name: str) -> Path:
    """A new, empty file in `folder` for what will become the file `name`."""
    handle, path = tempfile.mkstemp(_SUFFIX, _prefix(folder, name), folder)
    # mkstemp creates files that only their owner can read; results get the user's default permissions.
    os.chmod(path, default_mode())
    os.close(handle)
    return Path(path)


def default_mode(most: int = 0o666) -> int:
    """The permissions of the user's new files; with 0o777 as the most, those of folders."""
    umask = os.umask(0)
    os.umask(umask)
    return most & ~umask


def temporary_folder(folder: Path, name: str) -> Path:
    """A new folder in `folder` for what will become the folder `name`."""
    path = _private_folder(folder, name)
    path.chmod(default_mode(0o777))
    return path


def new_scratch_folder() -> Path:
    """A folder for the files of this process, which the caller removes and nobody else can read."""
    return _private_folder(Path(tempfile.gettempdir()), "caplens")


def _private_folder(folder: Path, name: str) -> Path:
    """A new folder that only its owner can read."""
    return Path(tempfile.mkdtemp(_SUFFIX, _prefix(folder, name), folder))


def _prefix(folder: Path, name: str) -> str:
    """`.NAME.HOST-PID-`: whose a temporary file is. What dead processes left in the folder is removed first."""
    _sweep(folder)
    return f".{name[:_LONGEST_PREFIX]}.{_host()}-{os.getpid()}-"


@cache
def _sweep(folder: Path) -> None:
    """Once for each folder, because listing one with many files takes long."""
    with os.scandir(folder) as entries:
        abandoned = [entry for entry in entries if _is_abandoned(entry.name)]
    for entry in abandoned:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            # Of another user, it is not ours to remove.
            with suppress(OSError):
                os.unlink(entry.path)


@cache
def _host() -> str:
    """This machine, and what the numbers of its processes mean: in each container they begin anew."""
    try:
        process_numbers = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        process_numbers = ""
    return hashlib.sha256(f"{socket.gethostname()} {process_numbers}".encode()).hexdigest()[:8]


def _is_abandoned(name: str) -> bool:
    """Whether a file is one of ours whose process is dead. A number that another process has got since keeps the file."""
    ours = re.fullmatch(rf"\..+\.{_host()}-(\d+)-.*{re.escape(_SUFFIX)}", name, re.DOTALL)
    if ours is None or os.name != "posix":
        return False
    try:
        os.kill(int(ours[1]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False

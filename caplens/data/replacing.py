"""Atomic writing: a file or folder is written beside its place and renamed when complete, so that none is ever half-written."""

import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caplens.data.temporary import default_mode, temporary_file, temporary_folder
from caplens.errors import InputError

_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux."""
_AT_WORKING_FOLDER = -100
"""AT_FDCWD."""


_outputs: set[Path] = set()
"""The files that the command which is running will write."""


@contextmanager
def inputs_kept() -> Iterator[None]:
    """While the block runs, a file that is to be written cannot be read: writing it would destroy an input."""
    try:
        yield
    finally:
        _outputs.clear()


def ensure_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error now, not after hours of work, if `path` cannot be written."""
    if not is_special(path):
        _temporary_beside(_real(path)).unlink()
        _outputs.add(_real(path))


def ensure_not_output(path: str | os.PathLike[str]) -> None:
    """Raise an error if a file that is read is also to be written by the command that is running."""
    if _outputs and _real(path) in _outputs:
        raise _named_twice(path)


def ensure_apart(output: str | os.PathLike[str] | None, *paths: str | os.PathLike[str] | None) -> None:
    """Raise an error if `output` is one of `paths`, which are also read or written."""
    for path in paths:
        if output is not None and path is not None and _is_same_file(output, path) and not is_special(output):
            raise _named_twice(output)


def _is_same_file(output: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    if str(path) != "-":
        return _real(output) == _real(path)
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), os.stat(output))
    except (OSError, ValueError, AttributeError):
        # Nothing is written there yet, or there is no standard input.
        return False


def _named_twice(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path}: this file is named twice, and writing it would destroy it. Choose another output.")


@contextmanager
def replacing(path: str | os.PathLike[str], *, new: bool = False) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it becomes `path` only if the block succeeds.

    A symbolic link is followed. A device or pipe gets the content once it is complete. With `new`, it is an error if there is a
    file of this name by then, and the file keeps the rights that the block gives it.
    """
    target = _real(path)
    special = is_special(target)
    temporary = _temporary_beside(Path(tempfile.gettempdir()) / "output" if special else target)
    try:
        yield temporary
        if special:
            with temporary.open("rb") as content, target.open("wb") as out:
                shutil.copyfileobj(content, out)
        else:
            _move_new(temporary, target) if new else _move(temporary, target)
    except FileExistsError:
        raise InputError(f"{target}: this file exists already. Choose another, or remove it.") from None
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def _move(temporary: Path, target: Path) -> None:
    # What only its owner could read stays so. Some writers replace the temporary file by one of their own rights.
    temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else default_mode())
    os.replace(temporary, target)


def _move_new(temporary: Path, target: Path) -> None:
    """Unlike renaming, linking never takes the place of another file. The file keeps the rights that it was given."""
    os.link(temporary, target)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside `path` to write to; it becomes `path`, whole, only if the block succeeds."""
    target = _real(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() and _previous(target).is_dir():
            _previous(target).rename(target)
        temporary = temporary_folder(target.parent, target.name)
    except OSError as error:
        raise InputError(f"{target}: this folder cannot be created ({error.strerror}). Choose another.") from None
    try:
        yield temporary
        _exchange(temporary, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(temporary: Path, target: Path) -> None:
    """Put one folder in the place of another, which there is at every moment where the system can do that."""
    if not target.exists():
        temporary.rename(target)
        return
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is not None:
        names = os.fsencode(temporary), os.fsencode(target)
        if not rename(_AT_WORKING_FOLDER, names[0], _AT_WORKING_FOLDER, names[1], _EXCHANGE):
            return
    previous = _previous(target)
    shutil.rmtree(previous, ignore_errors=True)
    target.rename(previous)
    try:
        temporary.rename(target)
    except OSError:
        previous.rename(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _previous(target: Path) -> Path:
    """Where the old folder is for the moment in which there is neither, on systems that cannot exchange two."""
    return target.with_name(f".{target.name}.caplens-previous")


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a device, pipe or socket."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)  # noqa: PTH110, PTH112, PTH113


def _real(path: str | os.PathLike[str]) -> Path:
    """The path with links followed; unlike `Path.resolve`, without an error where they lead in a circle."""
    return Path(os.path.realpath(path))


def _temporary_beside(target: Path) -> Path:
    if target.suffix in (".gz", ".xz", ".bz2"):
        raise InputError(f"{target}: compressed output is not supported; leave off {target.suffix}.")
    if os.path.isdir(target):  # noqa: PTH112
        raise InputError(f"{target}: this is a folder; name a file to write to.")
    try:
        # A name that is too long is found out now, and not when the file is complete.
        target.is_symlink()
        return temporary_file(target.parent, target.name)
    except (OSError, ValueError) as error:
        missing = not os.path.isdir(target.parent)  # noqa: PTH112
        why = "the folder does not exist" if missing else (getattr(error, "strerror", None) or str(error))
        raise InputError(f"{target}: cannot be written ({why}). Choose another output.") from None

"""Images from inside of archives and tables, each as a file of its own in a folder that is removed at the end."""

import atexit
import hashlib
import shutil
from functools import cache
from pathlib import Path, PurePosixPath

from caplens.data.files import Place, max_line_bytes, too_long
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError

_LONGEST_NAME = 100
_IMAGE_PER_LINE = 4
"""How many times larger than a line an image may be."""
_names: dict[str, str] = {}
"""File -> the name of the image in the table, where that has folders."""


def extracted_image(name: str | None, content: bytes, place: Place) -> str:
    """The path of a file with this content, under the image's own name where it has one.

    It is named by its content and name: captions of one image share a file, however often they are read.
    """
    limit = _IMAGE_PER_LINE * max_line_bytes()
    if len(content) > limit:
        raise too_long(place, "an image", limit)
    plain = PurePosixPath((name or "").replace("\\", "/").replace("\0", "")).name[-_LONGEST_NAME:]
    digest = hashlib.blake2b(content, digest_size=16, key=hashlib.sha256((name or "").encode()).digest()).hexdigest()
    folder = _scratch() / digest[:2] / digest
    path = folder / (plain if plain not in ("", ".", "..") else f"{digest}.image")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"{place}: its images cannot be written to {_scratch()} ({error.strerror or error})."
            " Set TMPDIR to a folder with more room."
        ) from None
    if name and name != path.name:
        _names[str(path)] = name
    return str(path)


def is_extracted(path: object) -> bool:
    """Whether an image is a file that goes when caplens ends."""
    return isinstance(path, str) and bool(_scratch.cache_info().currsize) and path.startswith(f"{_scratch()}/")


def original_name(path: str) -> str:
    """The name of an image as people know it: of one that was extracted, its own name."""
    return _names.get(path, Path(path).name) if is_extracted(path) else path


def remove_extracted() -> None:
    """Remove the images that were extracted so far, of samples that nobody uses any more."""
    if _scratch.cache_info().currsize:
        for folder in _scratch().iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        _names.clear()


@cache
def _scratch() -> Path:
    folder = new_scratch_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

"""Images from inside of archives and tables, each as a file of its own in a folder that is removed at the end."""

import atexit
import shutil
from functools import cache
from itertools import count
from pathlib import Path, PurePosixPath

from caplens.data.files import Place, max_line_bytes, too_long
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError

_LONGEST_NAME = 100
_IMAGE_PER_LINE = 4
"""How many times larger than a line an image may be."""
_numbers = count()


def extracted_image(name: str | None, content: bytes, place: Place) -> str:
    """The path of a file with this content, under the image's own name where it has one."""
    limit = _IMAGE_PER_LINE * max_line_bytes()
    if len(content) > limit:
        raise too_long(place, "an image", limit)
    plain = PurePosixPath((name or "").replace("\\", "/").replace("\0", "")).name[-_LONGEST_NAME:]
    number = next(_numbers)
    folder = _scratch() / str(number // 1000) / str(number)
    try:
        folder.mkdir(parents=True)
        path = folder / (plain if plain not in ("", ".", "..") else f"{number}.image")
        path.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"{place}: its images cannot be written to {_scratch()} ({error.strerror or error})."
            " Set TMPDIR to a folder with more room."
        ) from None
    return str(path)


def original_name(path: str) -> str:
    """The name of an image as people know it: of one that was extracted, its own name."""
    return Path(path).name if _scratch.cache_info().currsize and path.startswith(f"{_scratch()}/") else path


@cache
def _scratch() -> Path:
    folder = new_scratch_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

"""`StorageFolder`: a folder here, or one of an object store by its URL; files in it are written whole or not at all."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from caplens.data.replacing import replacing
from caplens.errors import CaplensError, InputError, reason
from caplens.libraries import require

JOB = "job.json"
"""The file by which a folder of results says which job it holds."""
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(?=[^/])", re.IGNORECASE)
_WILD = re.compile(r"[*?\[]")


def as_url(place: str | Path) -> str | None:
    """The URL that somebody wrote, of whose slashes a `Path` keeps one; None for a path."""
    text = str(place)
    match = _URL.match(text)
    return None if match is None else f"{match[1].lower()}://{text[match.end() :]}"


def arrow_library(module: str = "pyarrow") -> Any:
    """A module of pyarrow."""
    return require(module, "Scoring partition by partition", "parquet")


class StorageFolder:
    """A folder, by its path or by a URL that pyarrow knows, such as `s3://bucket/folder`.

    Parameters
    ----------
    place
        The path or URL.
    """

    def __init__(self, place: str | Path) -> None:
        self._system, self._root, self.place = _opened(str(place))
        self._is_local = as_url(place) is None

    def path(self, *names: str) -> str:
        return "/".join([self._root.rstrip("/"), *names])

    def files(self, *names: str) -> set[str]:
        """The names of the files in a folder below this one."""
        fs = arrow_library("pyarrow.fs")
        with self._problems():
            infos = self._system.get_file_info(fs.FileSelector(self.path(*names), allow_not_found=True))
            return {info.base_name for info in infos if info.is_file}

    def read(self, *names: str) -> bytes | None:
        """The content of a file; None if there is none."""
        try:
            with self._system.open_input_file(self.path(*names)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._problem(error, *names) from None

    def write(self, content: bytes, *names: str) -> None:
        """Write a file. In an object store it appears when it is complete; here it is renamed then."""
        with self._problems():
            if self._is_local:
                target = Path(self.path(*names))
                target.parent.mkdir(parents=True, exist_ok=True)
                with replacing(target) as temporary:
                    temporary.write_bytes(content)
                return
            with self._system.open_output_stream(self.path(*names)) as out:
                out.write(content)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._problem(error) from None

    def _problem(self, error: Exception, *names: str) -> CaplensError:
        return CaplensError(f"{'/'.join([self.place, *names])}: cannot be used ({reason(error)}).")


class FoundFile:
    """A file of the input.

    Attributes
    ----------
    name
        Its path or URL, as messages have it.
    version
        By which it is known to be unchanged: its size and when it was last changed.
    """

    def __init__(self, system: Any, info: Any, prefix: str) -> None:
        self._system, self._path = system, info.path
        self.name = f"{prefix}{info.path}"
        self.size = int(info.size)
        self.version = f"{info.size}@{info.mtime_ns}"
        self.is_local = not prefix

    @property
    def suffix(self) -> str:
        return PurePosixPath(self._path).suffix.lower()

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The file, to be read at any position."""
        try:
            with self._system.open_input_file(self._path) as file:
                yield file
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({reason(error)}).") from None


def find_files(place: str | Path) -> list[FoundFile]:
    """The files of a path or URL, which may be a folder or have wildcards in its last part; in the order of their names."""
    text = as_url(place) or str(place)
    folder, name = _split_wildcards(text)
    system, path, _ = _opened(folder)
    try:
        info = system.get_file_info(path)
        infos = [info] if info.is_file else _files_below(system, path, name)
    except OSError as error:
        raise InputError(f"{text}: cannot be read ({reason(error)}).") from None
    if not infos:
        raise InputError(f"{text}: there are no files of this name.")
    return [FoundFile(system, info, _prefix(text)) for info in sorted(infos, key=lambda info: info.path)]


def _split_wildcards(text: str) -> tuple[str, str]:
    """The folder and the names that are meant; all of them where there are no wildcards."""
    folder, _, last = text.rpartition("/")
    if _WILD.search(folder):
        raise InputError(f"{text}: wildcards are allowed in the last part only, as in s3://bucket/folder/*.parquet.")
    return (folder or ".", last) if _WILD.search(last) else (text, "*")


def _files_below(system: Any, path: str, name: str) -> list[Any]:
    selector = arrow_library("pyarrow.fs").FileSelector(path, allow_not_found=True)
    infos = [info for info in system.get_file_info(selector) if info.is_file and not info.base_name.startswith((".", "_"))]
    return [info for info in infos if fnmatchcase(info.base_name, name)]


def _prefix(text: str) -> str:
    """What the path of a file in an object store lacks to be a URL."""
    url = as_url(text)
    return "" if url is None else f"{url.partition('://')[0]}://"


def find_file(name: str) -> FoundFile:
    """One file by the name that `FoundFile` has."""
    system, path, _ = _opened(name)
    try:
        info = system.get_file_info(path)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({reason(error)}).") from None
    if not info.is_file:
        raise InputError(f"{name}: there is no such file any more.")
    return FoundFile(system, info, _prefix(name))


def _opened(place: str) -> tuple[Any, str, str]:
    """The file system of a path or URL, the path in it, and how messages name it."""
    fs = arrow_library("pyarrow.fs")
    url = as_url(place)
    if url is None:
        return fs.LocalFileSystem(), str(Path(place).absolute()), place
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (OSError, ValueError, arrow_library().ArrowException) as error:
        raise InputError(f"{url}: this address cannot be opened ({reason(error)}).") from None
    return system, path, url

"""Where a model's files are: in a folder, in the Hugging Face cache, or to be downloaded into it.

The files' hashes are part of the model's fingerprint. The hash of a file is cached under its path, size and times of change, so
that gigabytes are read once.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from caplens.data.cache import cache_folder
from caplens.data.files import Source, expanded, open_regular
from caplens.data.formats.json_document import read_document
from caplens.data.replacing import replacing
from caplens.errors import CaplensError, InputError, reason
from caplens.libraries import require
from caplens.progress import logger

AnyPath = TypeVar("AnyPath", bound=PurePosixPath | Path)

_HASH = re.compile("[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")
_SETTINGS_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
_CODE_FILES = ("*.py",)
_IGNORED_FOLDERS = {"onnx", "openvino", "runs", "checkpoints"}
"""Folders of other formats, and of training runs."""
MANIFEST = "caplens-manifest.json"
"""The hashes of a model's files; it is not itself a part of the model."""
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""Which file has which weights, in a model of several files."""
_VOCABULARY = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


class Layout(NamedTuple):
    """Which files of a folder belong to a model of a family."""

    required: tuple[tuple[str, ...], ...]
    """Groups of file names: of each group, at least one file must exist."""
    weights: tuple[tuple[str, ...], ...] = ()
    """Groups of patterns of weight files, in the order in which the family's library prefers them: of each folder, only the files
    of the first group that has any are read."""
    code: bool = False
    """Whether the Python files of the model belong to it."""

    def choose(self, paths: Iterable[AnyPath]) -> list[AnyPath]:
        """The paths that belong to the model."""
        patterns = _SETTINGS_FILES + _CODE_FILES if self.code else _SETTINGS_FILES
        candidates = [path for path in paths if not _IGNORED_FOLDERS & set(path.parts[:-1]) and path.name != MANIFEST]
        model_paths = [path for path in candidates if _matches(path, patterns)]
        for folder in {path.parent for path in candidates}:
            model_paths += self._preferred_weights([path for path in candidates if path.parent == folder])
        return model_paths

    def _preferred_weights(self, paths: list[AnyPath]) -> list[AnyPath]:
        for patterns in self.weights:
            weight_paths = [path for path in paths if _matches(path, patterns)]
            if weight_paths:
                return weight_paths
        return []

    def _is_weights(self, path: Path) -> bool:
        return any(_matches(path, patterns) for patterns in self.weights)

    def missing(self, folder: Path) -> str | None:
        """The names of the files that a folder would need to be such a model; None if it is complete."""
        for names in self.required:
            if not any((folder / name).is_file() for name in names):
                return " or ".join(names)
        if self.weights and not any(self._is_weights(path) for path in model_files(folder, self)):
            return " or ".join(name for names in self.weights for name in names if "?" not in name)
        return None


_TRANSFORMERS_WEIGHTS = (
    ("model.safetensors", "model-?????-of-?????.safetensors"),
    ("pytorch_model.bin", "pytorch_model-?????-of-?????.bin"),
)
CONFIGURATION = Layout((("config.json",),))
VOCABULARY = Layout((_VOCABULARY,))
HF = Layout((("config.json",), ("preprocessor_config.json", "processor_config.json"), _VOCABULARY), _TRANSFORMERS_WEIGHTS)
MCLIP = Layout((("config.json",), _VOCABULARY), _TRANSFORMERS_WEIGHTS)
ST = Layout((("modules.json",),), _TRANSFORMERS_WEIGHTS)
OPEN_CLIP = Layout(
    (("open_clip_config.json",),),
    tuple(
        (name,)
        for name in (
            "open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "open_clip_pytorch_model.bin",
            "open_clip_pytorch_model.pth", "model.safetensors", "pytorch_model.bin", "pytorch_model.pth", "model.pth",
        )
    ),
)  # fmt: skip


def find_model(name: str, layout: Layout, revision: str | None = None, *, offline: bool = False) -> Path:
    """The folder of a model: `name` itself, or the cached snapshot of the hub's model of that name, downloaded if needed."""
    folder = folder_of(name)
    if folder is not None:
        if revision is not None:
            raise InputError(f"{name}: this is a folder, which has no revisions; remove ,revision= from the name.")
        missing = layout.missing(folder)
        if missing is not None:
            raise InputError(f"{folder}: {missing} is missing, so the folder of the model is incomplete.")
        return folder
    if not _REPOSITORY.fullmatch(name) or name.startswith("."):
        raise InputError(f"{name}: there is no such model folder.")
    return _find_on_hub(name, layout, revision, offline=offline)


def _find_on_hub(name: str, layout: Layout, revision: str | None, *, offline: bool) -> Path:
    cached = _snapshot(name, revision, None)
    missing = None if cached is None else layout.missing(cached)
    if cached is not None and missing is None:
        logger.info(f"{name}: from the cache")
        return cached
    if offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        part = "it" if cached is None else f"{missing}, which is part of it,"
        raise InputError(f"{name}: {part} is not on this machine, and nothing may be downloaded. {_manual_download(name)}")
    logger.info(f"{name}: downloading into the Hugging Face cache")
    downloaded = _snapshot(name, revision, layout)
    missing = "the model" if downloaded is None else layout.missing(downloaded)
    if downloaded is None or missing is not None:
        raise InputError(f"{name}: {missing} is missing on the hub, so this is not a model of this family.")
    return downloaded


def folder_of(name: str) -> Path | None:
    """The folder that a name refers to, if there is one."""
    try:
        folder = expanded(name)
        return folder if folder.is_dir() else None
    except (OSError, InputError, ValueError):
        return None


def _snapshot(name: str, revision: str | None, layout: Layout | None) -> Path | None:
    """The folder of a hub model in the cache, if any; with a layout, the files that it chooses are downloaded first."""
    hub = require("huggingface_hub", "A model from the hub", "hf")
    from huggingface_hub import errors

    try:
        if layout is None:
            return Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
        repo_files = hub.HfApi().list_repo_files(name, revision=revision)
        model_paths = [str(path) for path in layout.choose([PurePosixPath(path) for path in repo_files])]
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=model_paths))
    except errors.GatedRepoError:
        raise InputError(f"{name}: this model is gated. Accept its terms on the hub and log in with: hf auth login") from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"{name}: there is no folder and no hub model of this name. Check the spelling.") from None
    except errors.RevisionNotFoundError:
        raise InputError(f"{name}: the hub has no revision {revision!r} of this model.") from None
    except errors.HFValidationError:
        raise InputError(f"{name}: this is neither a folder nor the name of a model on the hub (ORG/NAME).") from None
    except Exception as error:
        # The error that a missing network raises depends on the versions of three libraries.
        if layout is None:
            return None
        raise CaplensError(
            f"{name}: it is not on this machine and the hub cannot be reached ({reason(error)}). {_manual_download(name)}"
        ) from None


def _manual_download(name: str) -> str:
    return (
        f"On a machine with a network run: hf download {name} --local-dir FOLDER; copy the folder here and pass its path"
        " instead of the name."
    )


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of one of a model's files."""
    if not path.exists():
        raise InputError(f"{path}: the file is missing, so the folder of the model is incomplete.")
    with Source(path) as source:
        content = read_document(source)
    if not isinstance(content, dict):
        raise InputError(f"{path}: a JSON object is expected. Get the model again.")
    return content


def recipe_of(settings: Mapping[str, Any]) -> str | None:
    """The recipe that a model was fine-tuned with, from the settings that caplens saved with it."""
    tuned = settings.get("tuned")
    return str(tuned.get("recipe")) if isinstance(tuned, dict) else None


def model_files(folder: Path, layout: Layout) -> list[Path]:
    """The files of a folder that belong to the model."""
    # Relative paths, because only folders inside the model's are ignored: caplens trains models into folders called 'runs'.
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    chosen = layout.choose(paths)
    for path in paths:
        if path.name in _INDEXES:
            _check_index(folder / path, {other.name for other in paths if other.parent == path.parent}, layout)
    return [folder / path for path in chosen]


def _check_index(path: Path, names: set[str], layout: Layout) -> None:
    """Raise an error if an index names weights that are not those of the model: they would not be in its fingerprint."""
    weights = read_json(path).get("weight_map")
    files = set(weights.values()) if isinstance(weights, dict) else {weights}
    for name in map(str, files):
        if name not in names or not any(_matches(PurePath(name), patterns) for patterns in layout.weights):
            raise InputError(f"{path}: it names {name!r}, which is none of the model's files of weights. Get the model again.")


def _matches(path: PurePath, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in patterns)


def fingerprint(files: Sequence[Path], *facts: object) -> str:
    """A hash of the names and content of files (not of their folders), and of further facts that change an embedding.

    Files of one name, the layers of a sentence transformer say, are in the order of their folders.
    """
    ordered = sorted(files, key=lambda path: (path.name, path.parent.name))
    versions = [_version(path) for path in ordered]
    with ThreadPoolExecutor() as pool:
        hashes = list(zip((path.name for path in ordered), pool.map(file_hash, ordered), strict=True))
    digest = hashlib.sha256(json.dumps([hashes, [str(fact) for fact in facts]]).encode()).hexdigest()
    _versions[digest] = list(zip(ordered, versions, strict=True))
    return digest


_versions: dict[str, list[tuple[Path, str | None]]] = {}
"""Fingerprint -> the files that were hashed, each with what shows that it is still the same."""


def watch(digest: str, path: Path | None) -> None:
    """Let `ensure_unchanged` look at a further file, which the facts of a fingerprint stand for."""
    if path is not None:
        _versions.setdefault(digest, []).append((path, _version(path)))


def ensure_unchanged(digest: str) -> None:
    """Raise an error if a file of the model with this fingerprint is another now: what was loaded is not what was hashed."""
    for path, version in _versions.get(digest, ()):
        if _version(path) != version:
            raise InputError(f"{path}: this file of the model was changed since the command began. Run it again.")


def _version(path: Path) -> str | None:
    """What changes with the file: its path, size, place on the disk and times; None if there is none."""
    try:
        stat = path.stat()
        return f"{path.resolve()} {stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    except OSError:
        return None


def file_hash(path: Path, *, read: bool = False) -> str:
    """The SHA-256 of a file, from the cache if the file has not changed; with `read`, always of its bytes."""
    try:
        cached = cache_folder() / "hashes" / hashlib.sha256(str(_version(path)).encode()).hexdigest()
        if cached.is_file() and not read:
            digest = cached.read_text(encoding="ascii", errors="replace")
            if _HASH.fullmatch(digest):
                return digest
        with open_regular(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with replacing(cached) as temporary:
            temporary.write_text(digest, encoding="ascii")
    except (OSError, InputError):
        # If the cache cannot be written, the file is only hashed again next time.
        return digest
    return digest

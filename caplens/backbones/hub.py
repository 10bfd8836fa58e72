"""Where a model's files are: in a folder, in the Hugging Face cache, or to be downloaded into it.

What is found is hashed into the model's fingerprint. The hash of a file is remembered by its size and time of change, so
that gigabytes are read once.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from caplens.data.cache import cache_folder
from caplens.data.files import replacing
from caplens.errors import CaplensError, InputError, reason
from caplens.libraries import require
from caplens.progress import logger

AnyPath = TypeVar("AnyPath", bound=PurePosixPath | Path)

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")
_SMALL = ("*.json", "*.txt", "*.model", "*.jinja")
_CODE = "*.py"
_UNRELATED = {"onnx", "openvino", "runs", "checkpoints"}
"""Folders of other formats and of training."""
_VOCABULARY = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


class Layout(NamedTuple):
    """Which files of a folder make a model of some family."""

    required: tuple[tuple[str, ...], ...]
    """Of each of these, one must be there."""
    weights: tuple[tuple[str, ...], ...] = ()
    """Names of weights as the family's library prefers them: in each folder, the first that are there are read, and no others."""
    code: bool = False

    def choose(self, paths: Iterable[AnyPath]) -> list[AnyPath]:
        """Those of the paths that make the model."""
        patterns = (*_SMALL, *((_CODE,) if self.code else ()))
        kept = [path for path in paths if not _UNRELATED & set(path.parts[:-1])]
        chosen = [path for path in kept if any(fnmatch(path.name, pattern) for pattern in patterns)]
        for folder in {path.parent for path in kept}:
            here = [path for path in kept if path.parent == folder]
            for names in self.weights:
                found = [path for path in here if any(fnmatch(path.name, name) for name in names)]
                if found:
                    chosen += found
                    break
        return chosen

    def missing(self, folder: Path) -> str | None:
        """What a folder lacks to be such a model."""
        for names in self.required:
            if not any((folder / name).is_file() for name in names):
                return " or ".join(names)
        if self.weights and not any(_is_weight(path, self) for path in model_files(folder, self)):
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
    """The folder of a model: `name` itself, or where the hub's model of that name is cached, downloaded if need be."""
    folder = folder_of(name)
    if folder is not None:
        if revision is not None:
            raise InputError(f"{name}: this is a folder, which has no revisions; leave ,revision= off.")
        lacking = layout.missing(folder)
        if lacking is not None:
            raise InputError(f"{folder}: {lacking} is missing, so this is no complete folder of such a model.")
        return folder
    if not _REPOSITORY.fullmatch(name) or name.startswith("."):
        raise InputError(f"{name}: there is no such folder of a model.")
    cached = _snapshot(name, revision, None)
    lacking = None if cached is None else layout.missing(cached)
    if cached is not None and lacking is None:
        logger.info(f"{name}: from the cache")
        return cached
    if offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        what = "it" if cached is None else f"{lacking}, which is part of it,"
        raise InputError(f"{name}: {what} is not on this machine, and nothing may be downloaded. {_by_hand(name)}")
    logger.info(f"{name}: downloading into the Hugging Face cache")
    found = _snapshot(name, revision, layout)
    lacking = "the model" if found is None else layout.missing(found)
    if found is None or lacking is not None:
        raise InputError(f"{name}: {lacking} is missing on the hub, so this is no model of such a kind.")
    return found


def folder_of(name: str) -> Path | None:
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _snapshot(name: str, revision: str | None, layout: Layout | None) -> Path | None:
    """The cached files of a model on the hub; with a layout, those that it chooses are downloaded first."""
    hub = require("huggingface_hub", "A model from the hub", "hf")
    from huggingface_hub import errors

    try:
        if layout is None:
            return Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
        listed = hub.HfApi().list_repo_files(name, revision=revision)
        chosen = [str(path) for path in layout.choose([PurePosixPath(path) for path in listed])]
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=chosen))
    except errors.GatedRepoError:
        raise InputError(f"{name}: this model is gated. Accept its terms on the hub and log in with: hf auth login") from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"{name}: there is no folder and no model on the hub of this name. Check the spelling.") from None
    except errors.RevisionNotFoundError:
        raise InputError(f"{name}: the hub has no revision {revision!r} of this model.") from None
    except errors.HFValidationError:
        raise InputError(f"{name}: this is neither a folder nor a name of a model on the hub (ORG/NAME).") from None
    except Exception as error:
        # What a missing network raises depends on the versions of three libraries.
        if layout is None:
            return None
        raise CaplensError(
            f"{name}: it is not on this machine and the hub cannot be reached ({reason(error)}). {_by_hand(name)}"
        ) from None


def _by_hand(name: str) -> str:
    return (
        f"On a machine with a network run: hf download {name} --local-dir FOLDER; copy the folder here and give its path in"
        " place of the name."
    )


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: the file is missing, so this is no complete folder of a model.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: this is no readable JSON ({error}). Get the model again.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: an object is expected. Get the model again.")
    return found


def recipe_of(settings: Mapping[str, Any]) -> str | None:
    """The recipe that a model was tuned with, by the settings that caplens wrote beside it."""
    tuned = settings.get("tuned")
    return str(tuned.get("recipe")) if isinstance(tuned, dict) else None


def model_files(folder: Path, layout: Layout) -> list[Path]:
    # Relative, because what the folder itself lies in says nothing: caplens's own models are in folders called 'runs'.
    inside = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return [folder / path for path in layout.choose(inside)]


def _is_weight(path: Path, layout: Layout) -> bool:
    return any(fnmatch(path.name, name) for names in layout.weights for name in names)


def fingerprint(files: Sequence[Path], *facts: object) -> str:
    """A hash of what the files hold and are called, and of further facts that change an embedding; not of where they lie."""
    with ThreadPoolExecutor() as pool:
        hashes = sorted(zip((path.name for path in files), pool.map(file_hash, files), strict=True))
    return hashlib.sha256(json.dumps([hashes, [str(fact) for fact in facts]]).encode()).hexdigest()


def file_hash(path: Path) -> str:
    try:
        about = path.stat()
        known = f"{path.resolve()} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
        memory = cache_folder() / "hashes" / hashlib.sha256(known.encode()).hexdigest()
        if memory.is_file():
            return memory.read_text(encoding="ascii")
        with path.open("rb") as stream:
            made = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        with replacing(memory) as temporary:
            temporary.write_text(made, encoding="ascii")
    except (OSError, InputError):
        # A cache that cannot be written only costs the time of hashing again.
        return made
    return made

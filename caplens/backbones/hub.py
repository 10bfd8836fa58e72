"""Where a model's files are: in a folder, in the Hugging Face cache, or to be downloaded into it.

What is found is hashed into the model's fingerprint. The hash of a file is remembered by its size and time of change, so
that gigabytes are read once.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from caplens.data.cache import cache_folder
from caplens.data.files import replacing
from caplens.errors import CaplensError, InputError
from caplens.libraries import require
from caplens.progress import note

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")
_SMALL = ("*.json", "*.txt", "*.model", "*.jinja")
_CODE = ("*.py",)
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth")
_UNRELATED = ("onnx/*", "openvino/*", "*.onnx", "flax*", "tf_*", "*.msgpack", "*.h5", "runs/*", "training_args.bin")
_SAFE = ".safetensors"


def find_model(
    name: str, revision: str | None = None, *, offline: bool = False, weights: bool = True, code: bool = False
) -> Path:
    """The folder of a model: `name` itself, or where the hub's model of that name is cached, downloaded if need be.

    `weights` and `code` say whether these are needed too, beside configuration and vocabulary.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not _REPOSITORY.fullmatch(name) or name.startswith("."):
        raise InputError(f"{name}: there is no such folder of a model.")
    small = (*_SMALL, *(_CODE if code else ()))
    cached = _snapshot(name, revision, [*small, *_WEIGHTS], local_files_only=True)
    if cached is not None and (not weights or _weight_files(cached)):
        note(f"{name}: from the cache")
        return cached
    if offline or os.environ.get("HF_HUB_OFFLINE", "0") not in ("0", ""):
        raise InputError(f"{name}: it is not on this machine, and nothing may be downloaded. {_by_hand(name)}")
    note(f"{name}: downloading into the Hugging Face cache")
    found = _snapshot(name, revision, [*small, *((_WEIGHTS[0],) if weights else ())])
    if found is not None and weights and not _weight_files(found):
        found = _snapshot(name, revision, list(_WEIGHTS))
    if found is None or (weights and not _weight_files(found)):
        raise InputError(f"{name}: there are no weights in this model on the hub. Check its name and files.")
    return found


def _snapshot(name: str, revision: str | None, patterns: Sequence[str], local_files_only: bool = False) -> Path | None:
    hub = require("huggingface_hub", "A model from the hub", "hf")
    from huggingface_hub import errors

    try:
        return Path(
            hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(patterns),
                ignore_patterns=list(_UNRELATED),
                local_files_only=local_files_only,
            )
        )
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
        if local_files_only:
            return None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CaplensError(
            f"{name}: it is not on this machine and the hub cannot be reached ({reason}). {_by_hand(name)}"
        ) from None


def _by_hand(name: str) -> str:
    return (
        f"On a machine with a network run: hf download {name} --local-dir FOLDER; copy the folder here and give its path in"
        " place of the name."
    )


def _weight_files(folder: Path) -> list[Path]:
    return [path for pattern in _WEIGHTS for path in folder.rglob(pattern)]


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


def fingerprint(files: Iterable[Path], *facts: object) -> str:
    """A hash of what the files hold and of further facts that change an embedding."""
    paths = sorted(set(files))
    with ThreadPoolExecutor() as pool:
        hashes = list(pool.map(_file_hash, paths))
    names = [path.name for path in paths]
    return hashlib.sha256(json.dumps([names, hashes, [str(fact) for fact in facts]]).encode()).hexdigest()


def model_files(folder: Path, code: bool = False) -> list[Path]:
    """The files of a folder that make a model: configuration, vocabulary, weights, and code if that is run.

    Weights in other formats beside safetensors are copies that nobody reads, and that not every machine has.
    """
    patterns = (*_SMALL, *_WEIGHTS, *(_CODE if code else ()))
    suffixes = {pattern.removeprefix("*") for pattern in patterns}
    found = [path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file()]
    safe = {path.parent for path in found if path.suffix == _SAFE}
    copies = {pattern.removeprefix("*") for pattern in _WEIGHTS} - {_SAFE}
    return [path for path in found if not (path.parent in safe and path.suffix in copies)]


def _file_hash(path: Path) -> str:
    try:
        about = path.stat()
        known = hashlib.sha256(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()
        memory = cache_folder() / "hashes" / known
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

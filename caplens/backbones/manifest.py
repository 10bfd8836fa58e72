"""The manifest of a model's folder: the hash of every file, written with the model and checked when it is loaded.

A folder is written beside its place and renamed when it is complete, so that a killed run leaves the old model or the new one.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caplens.backbones.hub import MANIFEST, file_hash, read_json
from caplens.data.formats.json_document import to_json
from caplens.data.replacing import replacing_folder
from caplens.errors import InputError
from caplens.progress import logger

_FILES = "files"
_OURS = ("caplens.json", "vocabulary.tsv")
"""Files that only models of caplens have."""


@contextmanager
def writing_model(folder: Path) -> Iterator[Path]:
    """A folder to write a model to; it becomes `folder`, with a manifest, only if the block succeeds."""
    with replacing_folder(folder) as temporary:
        yield temporary
        write_manifest(temporary)
        _keep_others(folder, temporary)


def _keep_others(folder: Path, temporary: Path) -> None:
    """Copy what people put into the old folder, a model card say: what its manifest does not name."""
    if not (folder / MANIFEST).is_file():
        return
    named = _named_hashes(folder / MANIFEST)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and path.name != MANIFEST and name.as_posix() not in named and not (temporary / name).exists():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, temporary / name)


def write_manifest(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    hashes = {path.relative_to(folder).as_posix(): file_hash(path) for path in files}
    (folder / MANIFEST).write_text(to_json({_FILES: hashes}, indent=1) + "\n", encoding="utf-8")


def _named_hashes(path: Path) -> dict[str, str]:
    """The files that a manifest names, with their hashes."""
    hashes = read_json(path).get(_FILES)
    if not isinstance(hashes, dict):
        raise InputError(f"{path}: this is not a manifest. Get the model again.")
    return hashes


def check_manifest(folder: Path) -> None:
    """Raise an error if a file of a model is not the one that was written. Models of other tools have no manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        if any((folder / name).is_file() for name in _OURS):
            logger.warning(f"{folder}: the model has no {MANIFEST}, so that its files cannot be checked for damage.")
        return
    for name, expected in _named_hashes(path).items():
        file = folder / name
        if (
            "\0" in name
            or folder.resolve() not in file.resolve().parents
            or not file.is_file()
            or file_hash(file, read=True) != expected
        ):
            raise InputError(
                f"{file}: this file is missing, or is not the one that the model was saved with. Get or train the model again; if"
                f" you changed it on purpose, remove {path}."
            )

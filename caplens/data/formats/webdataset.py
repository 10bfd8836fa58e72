"""WebDataset: a tar in which `KEY.jpg`, `KEY.txt` and `KEY.json` follow one another and are one sample."""

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from caplens.data.extracted import extracted_image
from caplens.data.files import Place, Source, max_line_bytes, too_long
from caplens.data.formats.json_document import parse_json
from caplens.data.rows import Row
from caplens.errors import InputError

_MAGIC, _MAGIC_AT = b"ustar", 257
_IMAGES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
_TEXTS = ("txt", "caption", "text", "cap")


def is_tar(head: bytes) -> bool:
    return head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC


class _Stream:
    """What tarfile reads from: forwards only, with the limits of `Source`."""

    def __init__(self, source: Source) -> None:
        self._source, self._count = source, 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._count += len(data)
        self._source.check_ratio(self._count)
        return data


def read_rows(source: Source) -> Iterator[tuple[Place, Row]]:
    """One row for each key; the values of its JSON are columns."""
    key, row, place = "", Row(), Place(source.path)
    number = 0
    try:
        with tarfile.open(fileobj=_Stream(source), mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isreg() or name.name.startswith((".", "__")):
                    continue
                stem, _, suffix = name.name.partition(".")
                own_key = str(name.parent / stem)
                if own_key != key:
                    if row.keys() - {"id"}:
                        yield place, row
                    number += 1
                    key, row, place = own_key, Row(id=own_key), Place(source.path, number, "sample")
                _add(row, suffix.lower(), archive, member, place)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise InputError(f"{source.path}: this tar is damaged or cut short ({error}). Get it again.") from None
    if row.keys() - {"id"}:
        yield place, row


def _add(row: Row, suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> None:
    """One file of a sample; those of other kinds are passed over."""
    if suffix in _IMAGES:
        if "image" in row:
            raise InputError(f"{place}: the sample has two images, {member.name!r} is the second. Keep one.")
        row["image"] = extracted_image(PurePosixPath(member.name).name, _content(archive, member, place), place)
    elif suffix in _TEXTS:
        row["caption"] = _text(archive, member, place).strip()
    elif suffix == "json":
        values = parse_json(_text(archive, member, place), place)
        if not isinstance(values, dict):
            raise InputError(f"{place}: {member.name!r} must be a JSON object.")
        row |= {name: value for name, value in values.items() if name not in row}


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> str:
    try:
        return _content(archive, member, place).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place}: {member.name!r} is not UTF-8. Convert it.") from None


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> bytes:
    limit = 4 * max_line_bytes()
    if member.size > limit:
        raise too_long(place, f"the file {member.name!r}", limit)
    file: Any = archive.extractfile(member)
    content: bytes = file.read()
    return content

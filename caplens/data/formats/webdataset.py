"""WebDataset: a tar in which `KEY.jpg`, `KEY.txt` and `KEY.json` follow one another and are one sample."""

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from caplens.data.extracted import extracted_image
from caplens.data.files import Place, Source, check_utf8, max_line_bytes, too_long
from caplens.data.formats.json_document import parse_json
from caplens.data.rows import Row
from caplens.errors import InputError

_MAGIC, _MAGIC_AT = b"ustar", 257
_LONG_HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LONGEST_HEADER = 1 << 20
_IMAGES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
_TEXTS = ("txt", "caption", "text", "cap")


def is_tar(head: bytes) -> bool:
    return head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC


class _SmallHeaders(tarfile.TarInfo):
    """Headers that say more than a name are read whole; one of gigabytes is none."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _LONG_HEADERS and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        member: tarfile.TarInfo = super()._proc_member(tarfile_)  # type: ignore[misc]
        return member


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
    key, row, values, place = "", Row(), Row(), Place(source.path)
    number = 0
    try:
        with tarfile.open(fileobj=_Stream(source), mode="r|", tarinfo=_SmallHeaders) as archive:  # type: ignore[call-overload]
            for member in archive:
                check_utf8(member.name, source.path)
                name = PurePosixPath(member.name)
                if not member.isreg() or name.name.startswith((".", "__")):
                    continue
                stem, _, suffix = name.name.partition(".")
                own_key = str(name.parent / stem)
                if own_key != key:
                    if key:
                        yield from _sample(key, row, values, place)
                    number += 1
                    key, row, values, place = own_key, Row(), Row(), Place(source.path, number, "sample")
                _add(row, values, suffix.lower(), archive, member, place)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise InputError(f"{source.path}: this tar is damaged or cut short ({error}). Get it again.") from None
    if key:
        yield from _sample(key, row, values, place)


def _sample(key: str, row: Row, values: Row, place: Place) -> Iterator[tuple[Place, Row]]:
    """The row of a key: the JSON may say its id; what it says beside the files keeps the name `… (json)`."""
    if not row and not values:
        return
    json = {f"{name} (json)" if name in row else name: value for name, value in values.items()}
    # Files that say the same twice say it once.
    same = [name for name, value in row.items() if json.get(f"{name} (json)") == value]
    for name in same:
        del json[f"{name} (json)"]
    if json.get("id") is None:
        json["id"] = key
    elif json["id"] != key:
        json["__key__"] = key
    yield place, {**row, **json}


def _add(row: Row, values: Row, suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> None:
    """One file of a sample; those of other kinds are passed over."""
    if suffix in _IMAGES:
        if "image" in row:
            raise InputError(f"{place}: the sample has two images, {member.name!r} is the second. Keep one.")
        row["image"] = extracted_image(PurePosixPath(member.name).name, _content(archive, member, place), place)
    elif suffix in _TEXTS:
        if "caption" in row:
            raise InputError(f"{place}: the sample has two captions, {member.name!r} is the second. Keep one.")
        row["caption"] = _text(archive, member, place).strip()
    elif suffix == "json":
        content = parse_json(_text(archive, member, place), place)
        if not isinstance(content, dict):
            raise InputError(f"{place}: {member.name!r} must be a JSON object.")
        if values:
            raise InputError(f"{place}: the sample has two JSON files, {member.name!r} is the second. Keep one.")
        values |= content


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> str:
    try:
        return _content(archive, member, place).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place}: {member.name!r} is not UTF-8. Convert it.") from None


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Place) -> bytes:
    limit = 4 * max_line_bytes()
    if member.issparse():
        raise InputError(f"{place}: {member.name!r} is stored with holes, which can hold any size. Pack the files anew.")
    if member.size > limit:
        raise too_long(place, f"the file {member.name!r}", limit)
    file: Any = archive.extractfile(member)
    content: bytes = file.read()
    return content

"""Folders as tables: photos with captions beside or inside them, and folders of Hugging Face `datasets`.

A caption is the text file beside its photo (`cat.txt` for `cat.jpg`), else what the photo says itself: the description in its
XMP, IPTC or EXIF data, where programs for photographers write it.
"""

import html
import os
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL.Image import Exif

from caplens.data.files import Place, Source, check_utf8, open_regular
from caplens.data.image_folder import SUFFIXES
from caplens.data.replacing import ensure_not_output
from caplens.data.rows import Row
from caplens.errors import InputError

TABLES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
"""What Hugging Face calls the captions of a folder of images."""
PARTS = (".parquet", ".arrow", ".tar")
"""Files of which a data set has several."""
_SIDECARS = (".txt", ".caption")
_HEAD = 1 << 18
"""Bytes at the start of a photo in which its description is looked for."""
_XMP, _EXIF, _PHOTOSHOP = b"http://ns.adobe.com/xap/1.0/\0", b"Exif\0\0", b"Photoshop 3.0\0"
_XMP_DESCRIPTION = re.compile(rb"<dc:description>\s*<rdf:Alt>\s*<rdf:li[^>]*>([^<]*)</rdf:li>")
_IPTC_RESOURCE, _IPTC_CAPTION = 0x0404, (2, 120)
_IMAGE_DESCRIPTION, _XP_TITLE, _XP_COMMENT = 270, 40091, 40092
_GPS, _LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE = 0x8825, 1, 2, 3, 4
_START_OF_SCAN = 0xDA


def table_of(folder: Path) -> Path | None:
    """The table of captions of a folder of images, where it has one."""
    tables = [folder / name for name in TABLES if (folder / name).is_file()]
    if len(tables) > 1:
        raise InputError(f"{folder}: {' and '.join(table.name for table in tables)} could both be the table. Remove one.")
    return tables[0] if tables else None


def parts_of(folder: Path) -> list[Path]:
    """The files of a data set in parts, in order."""
    # Beside the table of `datasets` lie copies of what was computed from it.
    by_suffix = [
        sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file() and not path.name.startswith((".", "cache-")))
        for suffix in PARTS
    ]
    kinds = [parts for parts in by_suffix if parts]
    if len(kinds) > 1:
        examples = " and ".join(parts[0].name for parts in kinds)
        raise InputError(f"{folder}: {examples} could both be parts of the data set. Name the files that are meant.")
    return kinds[0] if kinds else []


def path_inside(folder: Path, name: str, place: Place) -> str:
    """The path of an image that a table in the folder names; an error if that is not below the folder."""
    root = os.path.abspath(folder)  # noqa: PTH100
    path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118
    if not path.startswith(os.path.join(root, "")):  # noqa: PTH118
        raise InputError(f"{place}: the image {name} is outside the folder {folder}. Move it there.")
    return path


def photo_rows(folder: Path) -> Iterator[tuple[Place, Row]]:
    """One row for each photo below the folder, in the order of names."""
    paths = sorted(
        Path(parent) / name
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    )
    if not paths:
        raise InputError(f"{folder}: the folder has no photos ({', '.join(SUFFIXES)}), and no table of captions.")
    for path in paths:
        name = path.relative_to(folder).as_posix()
        check_utf8(name, folder)
        # It is an input, whether or not it is opened.
        ensure_not_output(path)
        yield Place(path), {"id": name, "image": str(path), "caption": _caption_of(path)}


def _caption_of(path: Path) -> str:
    captions = {}
    for suffix in _SIDECARS:
        sidecar = path.with_suffix(suffix)
        if sidecar.is_file():
            with Source(sidecar) as source:
                captions[sidecar.name] = source.text().strip()
    if len(set(captions.values())) > 1:
        raise InputError(f"{path}: {' and '.join(captions)} have different captions for it. Remove one.")
    return next(iter(captions.values()), "") or ("" if captions else description_of(path))


def description_of(path: Path) -> str:
    """What a JPEG says about itself; empty if it says nothing, or is damaged."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except OSError:
        # The photo is said to be unreadable when it is scored.
        return ""
    found = dict.fromkeys(("xmp", "iptc", "exif"), "")
    for marker, content in _segments(head):
        if marker == 0xE1 and content.startswith(_XMP):
            match = _XMP_DESCRIPTION.search(content)
            found["xmp"] = html.unescape(match[1].decode("utf-8", "replace")) if match else ""
        elif marker == 0xE1 and content.startswith(_EXIF):
            found["exif"] = _exif_description(content)
        elif marker == 0xED and content.startswith(_PHOTOSHOP):
            found["iptc"] = _iptc_caption(content[len(_PHOTOSHOP) :])
    return next((text.strip("\0 \r\n\t") for text in found.values() if text.strip("\0 \r\n\t")), "")


def place_of(path: Path) -> tuple[float, float] | None:
    """Latitude and longitude of a JPEG, in degrees; None if it does not say where it was taken, or is damaged."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    content = next((content for marker, content in _segments(head) if marker == 0xE1 and content.startswith(_EXIF)), None)
    if content is None:
        return None
    exif = Exif()
    try:
        exif.load(content)
        gps = exif.get_ifd(_GPS)
        latitude = _degrees(gps[_LATITUDE], gps.get(_LATITUDE_REF) == "S")
        longitude = _degrees(gps[_LONGITUDE], gps.get(_LONGITUDE_REF) == "W")
    except Exception:
        # Pillow raises errors of many types for damaged data, which is as good as none.
        return None
    # Of NaN, comparisons are false.
    return (latitude, longitude) if abs(latitude) <= 90 and abs(longitude) <= 180 else None


def _degrees(parts: Sequence[float], negative: bool) -> float:
    degrees, minutes, seconds = (float(part) for part in parts)
    value = degrees + minutes / 60 + seconds / 3600
    return -value if negative else value


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The segments of a JPEG before its pixels: marker and content."""
    place = 2 if data.startswith(b"\xff\xd8") else len(data)
    while place + 4 <= len(data) and data[place] == 0xFF and data[place + 1] != _START_OF_SCAN:
        size = int.from_bytes(data[place + 2 : place + 4], "big")
        yield data[place + 1], data[place + 4 : place + 2 + size]
        place += 2 + max(size, 2)


def _exif_description(content: bytes) -> str:
    exif = Exif()
    try:
        exif.load(content)
        plain = exif.get(_IMAGE_DESCRIPTION)
        if isinstance(plain, str) and plain.strip("\0 "):
            # Old programs write UTF-8 where the standard has ASCII, and Pillow reads it as Latin-1.
            return _as_utf8(plain)
        wide = next((value for tag in (_XP_TITLE, _XP_COMMENT) if (value := exif.get(tag))), b"")
        return bytes(wide).decode("utf-16-le", "replace")
    except Exception:
        # Pillow raises errors of many types for damaged data, which is as good as none.
        return ""


def _as_utf8(text: str) -> str:
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _iptc_caption(data: bytes) -> str:
    """The caption in the resource of Photoshop that holds IPTC."""
    place = 0
    while data[place : place + 4] == b"8BIM" and place + 12 <= len(data):
        (identifier,) = struct.unpack_from(">H", data, place + 4)
        name_size = data[place + 6] + 1
        start = place + 6 + name_size + name_size % 2
        size = int.from_bytes(data[start : start + 4], "big")
        if identifier == _IPTC_RESOURCE:
            return _caption_record(data[start + 4 : start + 4 + size])
        place = start + 4 + size + size % 2
    return ""


def _caption_record(data: bytes) -> str:
    place = 0
    while place + 5 <= len(data) and data[place] == 0x1C:
        size = int.from_bytes(data[place + 3 : place + 5], "big")
        if (data[place + 1], data[place + 2]) == _IPTC_CAPTION:
            text = data[place + 5 : place + 5 + size]
            return text.decode("utf-8") if _is_utf8(text) else text.decode("latin-1")
        place += 5 + size
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

"""Tables in the encodings of office programs: UTF-16, and Windows-1252 where no byte can be UTF-8."""

import atexit
import codecs
import shutil
from pathlib import Path
from typing import TextIO

from caplens.data.files import Source
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError
from caplens.progress import logger

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BINARY = (b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\xff\xff\xff\xff")
"""First bytes of files that are no text."""
_WINDOWS = "cp1252"
_CHUNK = 1 << 20
_LONGEST_CHARACTER, _FIRST_CONTINUATION, _FIRST_OF_SEVERAL = 4, 0x80, 0xC0
"""Of UTF-8: bytes of a character, and the first bytes inside and at the start of one."""


def as_utf8(path: Path) -> Path:
    """The file itself, or a copy of it in UTF-8; an `InputError` for text in no encoding that is known.

    A file with some characters in UTF-8 and some bytes that are not is damaged, and stays as it is.
    """
    with Source(path) as source:
        head = source.read(512)
    if head.startswith(_BINARY) or (b"\0" in head and not head.startswith(_UTF_16)):
        return path
    encoding = "utf-16" if head.startswith(_UTF_16) else None
    encoding = encoding or (_WINDOWS if _is_windows(path) else None)
    if encoding is None:
        return path
    folder = new_scratch_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / path.name
    try:
        with Source(path) as source, copy.open("w", encoding="utf-8", newline="") as out:
            _transcode(source, encoding, out)
    except UnicodeError as error:
        raise InputError(f"{path}: this is neither UTF-8 nor {encoding.upper()} ({error}). Save it as UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be copied to {folder} ({error.strerror or error}).") from None
    if encoding == "utf-16":
        logger.info(f"{path.name}: read as UTF-16.")
    else:
        logger.warning(f"{path.name}: this is not UTF-8 and is read as Windows-1252. Save it as UTF-8 if letters are wrong.")
    return copy


def _transcode(source: Source, encoding: str, out: TextIO) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    count = 0
    while chunk := source.read(_CHUNK):
        count += len(chunk)
        source.check_ratio(count)
        out.write(decoder.decode(chunk))
    out.write(decoder.decode(b"", final=True))


def _is_windows(path: Path) -> bool:
    """Whether some lines are not UTF-8, and none has a character beyond ASCII that is."""
    damaged, count, rest = False, 0, b""
    with Source(path) as source:
        while chunk := source.read(_CHUNK):
            count += len(chunk)
            source.check_ratio(count)
            chunk, rest = _whole_characters(rest + chunk)
            if chunk.isascii():
                continue
            if _has_utf8(chunk):
                return False
            damaged = True
    return damaged


def _whole_characters(data: bytes) -> tuple[bytes, bytes]:
    """The data without the start of a character of UTF-8 at its end, and that start."""
    for length in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        byte = data[-length]
        if byte >= _FIRST_OF_SEVERAL and length < _LONGEST_CHARACTER:
            return data[:-length], data[-length:]
        if byte < _FIRST_CONTINUATION:
            break
    return data, b""


def _has_utf8(data: bytes) -> bool:
    """Whether any character of several bytes is in UTF-8."""
    text = data.decode("utf-8", errors="ignore")
    return not text.isascii()

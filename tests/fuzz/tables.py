"""Captions as people have them, to be fuzzed: workbooks, tables in other encodings, archives, folders, and files of levels."""

import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

import caplens
from caplens.calibration.applying import open_calibration
from caplens.data import SampleFile

WIDE = "Bild;Alt-Text (de);Alt-Text (ar)\r\n1.png;Ein Hund läuft über die Straße;كلب يركض\r\n2.png;Eine Katze schläft;\r\n"
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description'
    b' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:description><rdf:Alt><rdf:li xml:lang="de">Ein Hund</rdf:li></rdf:Alt>'
    b"</dc:description></rdf:Description></rdf:RDF></x:xmpmeta>"
)
Run = Callable[[Path, Path], object]


def plain_tables() -> dict[str, bytes]:
    """Files that one reader opens, whatever their encoding."""
    return {
        "utf16.csv": WIDE.encode("utf-16"),
        "cp1252.csv": WIDE.replace("كلب يركض", "").encode("cp1252"),
        "wide.csv": WIDE.encode(),
    }


def _photo(form: str = "JPEG", **tags: bytes) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(out, form, **tags)
    return out.getvalue()


def archive() -> bytes:
    """Shards of WebDataset are such tars."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for key in ("000", "001"):
            for name, content in {
                f"{key}.jpg": _photo(),
                f"{key}.txt": b"a dog runs",
                f"{key}.json": b'{"lang": "en", "url": "x"}',
            }.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def read_all(_: Path, path: Path) -> object:
    return list(SampleFile(path))


def described_photos() -> tuple[dict[str, bytes], Run]:
    """A folder of photos: one with XMP, one with EXIF, one with a file of text beside it, one with a file of JSON."""
    exif = Image.Exif()
    exif[0x010E] = "a dog runs"
    files = {
        "xmp.jpg": _photo(xmp=XMP),
        "exif.jpg": _photo(exif=exif.tobytes()),
        "beside.txt": b"a cat sleeps\n",
        "also.json": b'{"caption": "a bird", "lang": "en"}',
    }

    def run(_: Path, path: Path) -> None:
        for name in ("beside.jpg", "also.jpg"):
            (path.parent / name).write_bytes(_photo())
        read_all(_, path.parent)

    return files, run


def workbook() -> tuple[dict[str, bytes], Run] | None:
    """The parts of a workbook, of which one is mutated before they are put together."""
    if find_spec("openpyxl") is None:
        return None
    import openpyxl

    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (("Bild", "Alt-Text", "Sprache"), ("1.png", "Ein Hund läuft", "de"), ("2.png", "قطة نائمة", "ar")):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as parts:
        files = {name.replace("/", "+"): parts.read(name) for name in parts.namelist()}

    def run(folder: Path, path: Path) -> None:
        made = folder / "made.xlsx"
        with zipfile.ZipFile(made, "w") as parts:
            for part in path.parent.iterdir():
                parts.writestr(part.name.replace("+", "/"), part.read_bytes())
        read_all(folder, made)

    return files, run


def arrow_folder() -> tuple[dict[str, bytes], Run] | None:
    """A folder that the library datasets saved."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    out = io.BytesIO()
    table = pa.table({"image": [{"bytes": _photo(), "path": "1.jpg"}], "caption": ["a dog runs"], "lang": ["en"]})
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    features = {name: {"dtype": "string", "_type": "Value"} for name in ("caption", "lang")} | {"image": {"_type": "Image"}}
    files = {
        "data-00000-of-00001.arrow": out.getvalue(),
        "state.json": json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}).encode(),
        "dataset_info.json": json.dumps({"features": features}).encode(),
    }
    return files, lambda folder, path: read_all(folder, path.parent)


def calibration() -> bytes:
    """Levels of a metric that needs no model."""
    rng = random.Random(0)
    rows = [
        {"id": str(n), "caption": " ".join(rng.choices("a dog cat runs sleeps on the grass".split(), k=6)), "lang": "en"}
        for n in range(20)
    ]
    return json.dumps(caplens.calibrate(rows, "length").to_dict()).encode()


def read_calibration(_: Path, path: Path) -> object:
    return open_calibration(path)

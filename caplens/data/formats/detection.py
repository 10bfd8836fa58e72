"""Which format a file has, detected from its content."""

import json
from pathlib import Path
from typing import Any

from caplens.data.files import Place, Source
from caplens.data.formats import crossmodal3600, delimited
from caplens.data.formats.json_document import check_memory, read_document
from caplens.data.rows import canonical_name
from caplens.errors import InputError


def detect_format(path: Path) -> tuple[str, Any]:
    """The format (jsonl, crossmodal-3600, csv, tsv, parquet, json, coco-results, coco-annotations or dictionary), and the whole
    document where the format cannot be read as a stream.
    """
    with Source(path) as source:
        head = source.first_line()
        if not head or head.isspace():
            raise InputError(f"{path}: the file is empty, or begins with nothing but empty lines.")
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path}: this is UTF-16. Convert it, e.g. with: iconv -f utf-16 -t utf-8 {path.name}")
        if head.startswith(b"PAR1"):
            if source.packed:
                raise InputError(f"{path}: a compressed Parquet file cannot be read. Decompress it first.")
            return "parquet", None
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] not in (b"{", b"["):
            return _detect_table(path, start), None
        if start[:1] == b"{" and (lines := _format_of_lines(start, path)) is not None:
            return lines, None
    with Source(path) as source:
        document = read_document(source)
    return _document_format(document), document


def _document_format(document: Any) -> str:
    if isinstance(document, list):
        entry = document[0] if document else None
        return "coco-results" if isinstance(entry, dict) and "image_id" in map(canonical_name, entry) else "json"
    return "coco-annotations" if "annotations" in document else "dictionary"


def _detect_table(path: Path, start: bytes) -> str:
    header = start.split(b"\n", 1)[0].decode("utf-8", errors="replace").rstrip("\r")
    delimiter = delimited.delimiter_of(header)
    if delimiter is None:
        raise InputError(
            f"{path}, line 1: the format is not recognised. It should be JSONL, JSON (COCO or {{id: caption}}), Parquet, or"
            " CSV/TSV whose first line names the columns, among them 'id' and 'caption'."
        )
    return "tsv" if delimiter == "\t" else "csv"


def _format_of_lines(start: bytes, path: Path) -> str | None:
    """The format of one object per line, unlike one document: the first line ends its object, and is a sample or has lines after
    it. None for a document.
    """
    line, _, rest = start.partition(b"\n")
    check_memory(line.decode(errors="replace"), Place(path, 1))
    try:
        first = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        # A broken first line of JSONL should be reported as such: an object also begins on the next line.
        return "jsonl" if rest.lstrip(b"\r\n").startswith(b"{") else None
    names = set(first) if isinstance(first, dict) else set()
    if crossmodal3600.KEY in names:
        return "crossmodal-3600"
    is_sample = bool({"id", "image_id", "caption"} & set(map(canonical_name, names)))
    return "jsonl" if rest.strip() or is_sample else None

"""Which format a file has, detected from its content."""

import json
from pathlib import Path
from typing import Any

from caplens.data.aliases import field_meant_by
from caplens.data.columns import ColumnChoice
from caplens.data.files import Place, Source
from caplens.data.formats import crossmodal3600, delimited, spreadsheet, webdataset
from caplens.data.formats.json_document import check_memory, read_document
from caplens.data.rows import canonical_name
from caplens.errors import InputError, option

_OLD_EXCEL, _ARROW = b"\xd0\xcf\x11\xe0", b"\xff\xff\xff\xff"
"""First bytes of a file."""


def detect_format(path: Path, choice: ColumnChoice | None = None) -> tuple[str, Any]:
    """The format, and the whole document where it cannot be read as a stream. `choice` names columns of a table.

    Formats are jsonl, crossmodal-3600, csv, tsv, parquet, arrow, xlsx, webdataset, folder, json, coco-results, coco-annotations
    and dictionary.
    """
    if path.is_dir():
        return "folder", None
    with Source(path) as source:
        head = source.first_line()
        if not head or head.isspace():
            raise InputError(f"{path}: the file is empty, or begins with nothing but empty lines.")
        if head.startswith(b"PAR1"):
            if source.packed:
                raise InputError(f"{path}: a compressed Parquet file cannot be read. Decompress it first.")
            return "parquet", None
        if head.startswith(spreadsheet.MAGIC):
            if spreadsheet.is_workbook(path):
                return "xlsx", None
            raise InputError(f"{path}: this is a zip file, and no Excel workbook. Unpack it first.")
        if head.startswith(_OLD_EXCEL):
            raise InputError(f"{path}: this is an old Excel file (.xls). Save it as .xlsx or CSV.")
        if head.startswith(_ARROW):
            return "arrow", None
        if webdataset.is_tar(head):
            return "webdataset", None
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] not in (b"{", b"["):
            return _detect_table(path, start, choice), None
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


def _detect_table(path: Path, start: bytes, choice: ColumnChoice | None) -> str:
    header = start.split(b"\n", 1)[0].decode("utf-8", errors="replace").rstrip("\r")
    delimiter = delimited.delimiter_of(header, choice)
    if delimiter is None:
        raise InputError(
            f"{path}, line 1: the format is not recognised. It should be JSONL, JSON (COCO or {{id: caption}}), Parquet, or"
            " CSV/TSV whose first line names the columns, among them 'id' and 'caption'. Name columns that are called"
            f" otherwise with {option('columns', 'caption=ALT,image=File')}."
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
    is_sample = bool({"id", "image_id", "caption"} & set(map(canonical_name, names))) or "caption" in map(field_meant_by, names)
    return "jsonl" if rest.strip() or is_sample else None

"""Writing samples in any format that can be read, without losing anything silently."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path

from caplens.data.extracted import is_extracted, original_name
from caplens.data.formats import coco, delimited, dictionary, jsonl, parquet, spreadsheet
from caplens.data.formats.formulas import formulas_allowed
from caplens.data.replacing import ensure_apart, replacing
from caplens.data.sample import Sample
from caplens.errors import InputError, option

Writer = Callable[[Iterable[Sample], Path], None]

ONE_FILE: dict[str, Writer] = {
    "jsonl": jsonl.write,
    "csv": lambda samples, path: delimited.write(samples, path, ","),
    "tsv": lambda samples, path: delimited.write(samples, path, "\t"),
    "parquet": parquet.write,
    "xlsx": spreadsheet.write,
}
TWO_FILES: dict[str, tuple[Writer, Writer]] = {
    "coco": (coco.write_results, coco.write_annotations),
    "dictionary": (dictionary.write_captions, dictionary.write_references),
}
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".xlsx": "xlsx"}
FORMATS = [*ONE_FILE, *TWO_FILES]


def format_of(path: str | PathLike[str]) -> str:
    """The format that a file name asks for."""
    try:
        return SUFFIXES[Path(path).suffix.lower()]
    except KeyError:
        raise InputError(f"{path}: the suffix names no format. Choose one with {option('to')}: {', '.join(FORMATS)}.") from None


def write_samples(
    samples: Iterable[Sample],
    path: str | PathLike[str],
    to: str | None = None,
    references_path: str | PathLike[str] | None = None,
    *,
    lossy: bool = False,
    allow_formulas: bool = False,
) -> int:
    """Write samples to `path` and say how many there were.

    COCO and dictionaries keep references in a second file, `references_path`. What a format cannot hold is an error
    unless `lossy` says that it may go. In CSV and TSV, text that a spreadsheet would run as a formula gets an apostrophe before
    it, which reading takes off again, unless `allow_formulas`.
    """
    to = to or format_of(path)
    count = 0

    def counted() -> Iterator[Sample]:
        nonlocal count
        for sample in samples:
            count += 1
            yield _with_lasting_image(sample, lossy=lossy)

    if to in ONE_FILE:
        if references_path is not None:
            raise InputError(f"{to} keeps captions and references in one file; leave {option('references_output')} out.")
        with replacing(path) as target, formulas_allowed(allow_formulas):
            ONE_FILE[to](counted(), target)
        return count
    if to not in TWO_FILES:
        raise InputError(f"unknown format {to!r}; choose one of: {', '.join(FORMATS)}.")

    ensure_apart(path, references_path)
    write_captions, write_references = TWO_FILES[to]
    with ExitStack() as stack:
        # Entered first, so that it is replaced last, and not at all if the captions cannot be.
        references_target = None if references_path is None else stack.enter_context(replacing(references_path))
        target = stack.enter_context(replacing(path))
        checked = list(_checked(counted(), to, keeps_references=references_path is not None, lossy=lossy))
        write_captions((sample for sample in checked if sample.caption is not None), target)
        if references_target is not None:
            write_references(checked, references_target)
    return count


def _with_lasting_image(sample: Sample, *, lossy: bool) -> Sample:
    """An image from inside of a table or archive is a file only as long as caplens runs."""
    if not is_extracted(sample.image):
        return sample
    if not lossy:
        raise InputError(
            f"sample {sample.id!r}: its image is inside of the file, and would be lost. Unpack the images first, or allow"
            f" {option('lossy')} to keep their names only."
        )
    return replace(sample, image=original_name(str(sample.image)))


def _checked(samples: Iterable[Sample], to: str, *, keeps_references: bool, lossy: bool) -> Iterator[Sample]:
    ids: set[str] = set()
    for sample in samples:
        if sample.id in ids:
            raise InputError(
                f"the id {sample.id!r} appears for several systems or languages; {to} can hold one. Split the file first."
            )
        ids.add(sample.id)
        if not lossy:
            if sample.references and not keeps_references:
                raise InputError(
                    f"{to} keeps references in a second file: name it with {option('references_output')}, or allow"
                    f" {option('lossy')}."
                )
            beyond = [name for name in _unheld(sample, to) if getattr(sample, name)]
            if beyond:
                raise InputError(
                    f"{to} cannot hold {', '.join(beyond)} (sample {sample.id!r}). Choose another format, or allow"
                    f" {option('lossy')}."
                )
        yield sample


def _unheld(sample: Sample, to: str) -> tuple[str, ...]:
    """The fields that the two files have no place for. COCO keeps them with the caption, so it needs one."""
    if to == "dictionary":
        return ("image", "video", "source", "lang", "system", "ratings", "meta")
    return () if sample.caption is not None else ("video", "source", "lang", "system", "ratings", "meta")

"""Writing some rows of a file into another, with a score beside each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from caplens.arrays import Flags, Floats
from caplens.data.extracted import original_name
from caplens.data.formats import parquet
from caplens.data.reading import SampleFile
from caplens.data.replacing import replacing
from caplens.data.rows import free_name
from caplens.data.sample import Sample
from caplens.data.writing import format_of, write_samples
from caplens.errors import InputError


def write_selected(
    samples: SampleFile,
    ids: Sequence[str],
    kept: Flags,
    scores: Floats,
    column: str,
    path: str | PathLike[str],
    *,
    allow_formulas: bool = False,
) -> int:
    """Write the samples that are kept, in their order, and say how many there are.

    From Parquet to Parquet rows are copied as they are, with all columns and types. `column` is the name of the scores.
    """
    to = format_of(path)
    if samples.format == "parquet" and to == "parquet" and parquet.row_count(samples.path) == len(kept):
        with replacing(path) as target:
            parquet.copy_rows(samples.path, target, kept, scores, column)
        return int(kept.sum())
    return write_samples(_selected(samples, ids, kept, scores, column), path, to, lossy=True, allow_formulas=allow_formulas)


def _selected(samples: SampleFile, ids: Sequence[str], kept: Flags, scores: Floats, column: str) -> Iterator[Sample]:
    row = -1
    for row, sample in enumerate(samples):
        if row >= len(kept):
            break
        if sample.id != ids[row]:
            raise _changed(samples)
        if kept[row]:
            image = original_name(sample.image) if isinstance(sample.image, str) else sample.image
            # As in results, a column of the input that has the name of the scores gets another.
            meta = {free_name(name, sample.meta) if name == column else name: value for name, value in sample.meta.items()}
            meta[column] = round(float(scores[row]), 6)
            yield replace(sample, image=image, meta=meta)
    if row != len(kept) - 1:
        raise _changed(samples)


def _changed(samples: SampleFile) -> InputError:
    return InputError(f"{Path(samples.path)}: the file changed while it was read. Run the command again.")

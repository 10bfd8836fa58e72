"""Keeping the good captions of what is too large for one file: scored partition by partition, chosen over all of them."""

import io
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.calibration.filtering import FilterReport, FilterRule, is_lower_better, kept_scores
from caplens.data.extracted import remove_extracted
from caplens.data.selecting import write_selected
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError
from caplens.metrics.options import ScoringOptions
from caplens.partitions.folders import StorageFolder, arrow_library
from caplens.partitions.inputs import Partition, list_partitions, partition_file
from caplens.partitions.job import score_partitions
from caplens.partitions.scoring import SCORES
from caplens.progress import track

KEPT = "kept"
"""The folder, below that of the job, with the captions that are kept."""


def filter_partitions(
    captions: str | Path,
    output: str | Path,
    metric: str = "clipscore",
    *,
    keep_top: float | None = None,
    above: float | None = None,
    images: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    options: ScoringOptions | None = None,
) -> FilterReport:
    """Write the captions that are good enough, partition by partition, on this machine or scored on a Ray cluster.

    Parameters
    ----------
    captions, images, columns, options
        As for `score_partitions`.
    output
        The folder or URL: `kept` holds the captions, Parquet with all columns where the input is Parquet, else JSON Lines; beside
        it are the scores of all. A job that was stopped goes on there; the same scores serve another rule.
    metric
        The metric that decides.
    keep_top
        The share to keep, the best ones of all partitions together: 0.3 for 30%.
    above
        Keep captions that score higher than this.

    Returns
    -------
    FilterReport
        How many captions were kept, and the score of the worst of them.

    Raises
    ------
    InputError
        If nothing says what to keep, or something cannot be read or written.

    Examples
    --------
    >>> report = caplens.filter_partitions("pairs/*.parquet", "good", images="photos", keep_top=0.3)  # doctest: +SKIP
    """
    rule, columns = FilterRule(keep_top, above), dict(columns or {})
    summary = score_partitions(captions, output, [metric], images=images, columns=columns, resamples=0, options=options)
    folder, partitions = StorageFolder(summary.folder), list_partitions(captions)
    scored = {partition: _scores_of(folder, partition, metric) for partition in partitions}
    values = np.concatenate([of_partition for _, of_partition in scored.values()])
    kept = kept_scores(values, metric, rule)
    start = 0
    for partition, (ids, of_partition) in track(scored.items(), "keeping captions", len(scored)):
        part = slice(start, start + len(ids))
        start += len(ids)
        _write_kept(folder, partition, columns, ids, kept[part], of_partition, metric)
    count = int(kept.sum())
    worst = np.max if is_lower_better(metric) else np.min
    threshold = float(worst(values[kept])) if count else float("nan")
    warnings = [*summary.warnings, *([] if count else ["no caption was kept."])]
    unscored = int(np.isnan(values).sum())
    return FilterReport(len(values), count, unscored, threshold, metric, summary[metric].signature, warnings)


def _scores_of(folder: StorageFolder, partition: Partition, metric: str) -> tuple[list[str], Floats]:
    """The ids and scores of a partition; none of one without rows."""
    content = folder.read(SCORES, f"{partition.name}.parquet")
    if content is None:
        return [], np.empty(0)
    table = arrow_library("pyarrow.parquet").read_table(io.BytesIO(content), columns=["id", metric])
    values = table[metric].to_numpy(zero_copy_only=False).astype(np.float64)
    return table["id"].to_pylist(), values


def _write_kept(
    folder: StorageFolder,
    partition: Partition,
    columns: Mapping[str, str],
    ids: list[str],
    kept: Flags,
    scores: Floats,
    metric: str,
) -> None:
    scratch = new_scratch_folder()
    try:
        with partition_file(partition, columns) as samples:
            if samples is None:
                return
            suffix = "parquet" if samples.format == "parquet" else "jsonl"
            path = scratch / f"kept.{suffix}"
            try:
                write_selected(samples, ids, kept, scores, metric, path)
            except InputError as error:
                raise InputError(str(error).replace(str(path), f"{folder.place}/{KEPT}")) from None
            folder.write(path.read_bytes(), KEPT, f"{partition.name}.{suffix}")
    finally:
        remove_extracted()
        shutil.rmtree(scratch, ignore_errors=True)

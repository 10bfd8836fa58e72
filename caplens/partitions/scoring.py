"""Scoring one partition: rows in, a Parquet file of scores and a manifest out."""

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from caplens.arrays import Floats
from caplens.data.extracted import remove_extracted
from caplens.data.formats.json_document import to_json
from caplens.data.image_folder import SUFFIXES, with_images
from caplens.data.languages import base_language
from caplens.data.media import MissingImage
from caplens.data.sample import IMAGE_ID, Sample
from caplens.embed.engine import Engine
from caplens.metrics.base import Metric
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import build_metrics
from caplens.metrics.scoring import KeepColumns, run_metrics
from caplens.partitions.folders import StorageFolder, arrow_library, as_url
from caplens.partitions.frequencies import count_documents, load_frequency, to_bytes
from caplens.partitions.inputs import Partition, partition_samples
from caplens.results.scores import ScoreResult
from caplens.stats.exact import exact_sums
from caplens.stats.poisson import group_keys, resampled_sums

SCORES, ERRORS, MANIFESTS = "scores", "errors", "manifests"
_SLICE, _SLICE_OF_REMOTE_IMAGES = 8192, 256
"""Rows that are scored together; images of an object store are in memory meanwhile."""
_CONNECTIONS = 16
_MOST_WARNINGS = 20


@dataclass(frozen=True)
class PartitionJob:
    """What is the same for all partitions.

    Attributes
    ----------
    output
        The folder or URL of the results.
    metrics
        Their names.
    images
        The folder or URL that names of images are relative to.
    columns
        Field -> the column of the input that holds it.
    keep_columns
        Columns of the input that the scores carry.
    frequency
        The name and the hash of the file of document frequencies, where a metric needs them.
    """

    output: str
    metrics: tuple[str, ...]
    images: str | None
    columns: dict[str, str]
    keep_columns: KeepColumns
    resamples: int
    seed: int
    options: ScoringOptions
    frequency: tuple[str, str] | None = None
    identity: str = ""
    """A hash of all that changes the scores."""


def count_partition(job: PartitionJob, partition: Partition) -> None:
    """The first pass of CIDEr: write the document frequencies of a partition."""
    with partition_samples(partition, job.columns) as samples:
        counted = count_documents(samples, job.options.tokenizer, job.options.lang)
    remove_extracted()
    StorageFolder(job.output).write(to_bytes(counted), "frequencies", f"{counts_name(job, partition)}")


def counts_name(job: PartitionJob, partition: Partition) -> str:
    """The file of a partition's counts, which depend on the tokenizers and on the version of the input."""
    about = f"{partition.version}\0{job.options.tokenizer}\0{job.options.lang}\0{sorted(job.columns.items())}"
    return f"{partition.name}-{hashlib.sha256(about.encode()).hexdigest()[:8]}.npz"


def score_partition(job: PartitionJob, partition: Partition, engine: Engine | None) -> dict[str, Any]:
    """Score a partition, write its files, and return its manifest.

    Parameters
    ----------
    job
        What to compute.
    partition
        Of which rows.
    engine
        What encodes images and texts, where a metric needs it.

    Returns
    -------
    dict
        The manifest as it was written.
    """
    options = job.options if engine is None else replace(job.options, model=engine)
    if job.frequency is not None:
        options = replace(options, df=load_frequency(job.output, *job.frequency))
    metrics = build_metrics(job.metrics, options)
    output, sums = _Output(job), _Sums(job, metrics)
    with partition_samples(partition, job.columns) as samples:
        for portion in slices(samples, job.images):
            result = run_metrics(portion, metrics, keep_columns=job.keep_columns, require_scores=False)
            output.add(result)
            sums.add(result)
            remove_extracted()
    return output.write(partition, sums)


def slices(samples: Iterator[Sample], images: str | None) -> Iterator[list[Sample]]:
    """Samples with their images, as many together as are scored together."""
    remote = _RemoteImages(images) if images is not None and as_url(images) is not None else None
    size = _SLICE if remote is None else _SLICE_OF_REMOTE_IMAGES
    while portion := list(islice(samples, size)):
        if remote is not None:
            yield remote.attach(portion)
        else:
            yield list(with_images(portion, images)) if images is not None else portion


class _RemoteImages:
    """Images of an object store, by name or by id, as in a folder."""

    def __init__(self, place: str) -> None:
        self._folder = StorageFolder(place)
        self._pool = ThreadPoolExecutor(_CONNECTIONS)

    def attach(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with the content of their images."""
        names = [str(sample.image) if isinstance(sample.image, str | PathLike) else None for sample in samples]
        wanted = dict.fromkeys(
            name or sample.id for name, sample in zip(names, samples, strict=True) if not isinstance(sample.image, bytes)
        )
        contents = dict(zip(wanted, self._pool.map(self._read, wanted), strict=True))
        return [
            sample if isinstance(sample.image, bytes) else _with_content(sample, name, contents[name or sample.id])
            for name, sample in zip(names, samples, strict=True)
        ]

    def _read(self, name: str) -> bytes | MissingImage:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or as_url(name):
            return MissingImage(f"the image {name} is outside the folder {self._folder.place}")
        for candidate in (name, *(f"{name}{suffix}" for suffix in SUFFIXES if not path.suffix)):
            content = self._folder.read(candidate)
            if content is not None:
                return content
        return MissingImage(f"there is no file {name} in {self._folder.place}")


def _with_content(sample: Sample, name: str | None, content: bytes | MissingImage) -> Sample:
    """The sample with the content of its image, by whose name it is still resampled together with others."""
    meta = dict(sample.meta) if name is None else {IMAGE_ID: name, **sample.meta}
    return replace(sample, image=content, meta=meta)


class _Output:
    """The scores of a partition as Parquet, slice by slice, and the errors beside them."""

    def __init__(self, job: PartitionJob) -> None:
        self._arrow, self._parquet = arrow_library(), arrow_library("pyarrow.parquet")
        self._job, self._file = job, io.BytesIO()
        self._writer: Any = None
        self._errors: list[dict[str, Any]] = []
        self._rows = self._failed = 0
        self._warnings: dict[str, None] = {}

    def add(self, result: ScoreResult) -> None:
        text, number = self._arrow.string(), self._arrow.float64()
        columns = {"id": (result.ids, text), "lang": (result.langs, text), "system": (result.systems, text)}
        values = {name: ([None if value != value else value for value in scores.values.tolist()], number)
                  for name, scores in result.metrics.items()}  # fmt: skip
        carried = self._carried(result)
        table = self._arrow.table(
            {name: self._arrow.array(cells, kind) for name, (cells, kind) in {**columns, **values, **carried}.items()}
        )
        self._writer = self._writer or self._parquet.ParquetWriter(self._file, table.schema, compression="zstd")
        self._writer.write_table(table)
        for row, errors in result.row_errors.items():
            about = {"id": result.ids[row], "lang": result.langs[row], "system": result.systems[row]}
            self._errors += [{**about, "metric": name, "reason": error.reason} for name, error in errors]
            self._failed += 1
        self._rows += len(result.ids)
        self._warnings |= dict.fromkeys(result.warnings)

    def _carried(self, result: ScoreResult) -> dict[str, tuple[list[str | None], Any]]:
        """Columns of the input as text; a column is in every file, whether or not its rows have it."""
        kept = self._job.keep_columns
        names = list(kept) if not isinstance(kept, bool) else ["columns"] if kept else []
        cells: dict[str, tuple[list[str | None], Any]] = {}
        for name in names:
            if isinstance(kept, bool):
                rows = [{key: column[row] for key, column in result.columns.items()} for row in range(len(result.ids))]
                values: list[Any] = [to_json({key: value for key, value in row.items() if value is not None}) for row in rows]
            else:
                values = result.columns.get(name) or [None] * len(result.ids)
            texts = [value if value is None or isinstance(value, str) else to_json(value) for value in values]
            cells[f"{name} (input)" if name in result.metrics else name] = (texts, self._arrow.string())
        return cells

    def write(self, partition: Partition, sums: "_Sums") -> dict[str, Any]:
        """Publish the files; the manifest comes last, so that what has one is complete."""
        folder, name = StorageFolder(self._job.output), partition.name
        if self._writer is not None:
            self._writer.close()
        files = {f"{SCORES}/{name}.parquet": self._file.getvalue() if self._writer is not None else b""}
        if self._errors:
            out = io.BytesIO()
            self._parquet.write_table(self._arrow.Table.from_pylist(self._errors), out)
            files[f"{ERRORS}/{name}.parquet"] = out.getvalue()
        files[f"{MANIFESTS}/{name}.npz"] = sums.resampled()
        files = {path: content for path, content in files.items() if content}
        for path, content in files.items():
            folder.write(content, *path.split("/"))
        manifest = {
            "job": self._job.identity,
            "partition": partition._asdict(),
            "rows": self._rows,
            "failed": self._failed,
            "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
            "metrics": sums.content(),
            "warnings": list(self._warnings)[:_MOST_WARNINGS],
        }
        folder.write(json.dumps(manifest).encode(), MANIFESTS, f"{name}.json")
        return manifest


class _Sums:
    """Per metric and language, the sums of statistics that corpus scores and their intervals are computed from."""

    def __init__(self, job: PartitionJob, metrics: Sequence[Metric]) -> None:
        self._job = job
        self._totals: dict[str, dict[str, list[int]]] = {metric.name: {} for metric in metrics}
        self._scored: dict[str, dict[str, int]] = {metric.name: {} for metric in metrics}
        self._resampled: dict[str, Floats] = {}
        self._signatures: dict[str, list[str]] = {metric.name: [] for metric in metrics}

    def add(self, result: ScoreResult) -> None:
        langs = np.array([base_language(tag or self._job.options.lang or "en") for tag in result.langs])
        # By their names: the same captions have the same intervals wherever their images lie.
        keys = group_keys(group.removeprefix(f"{self._job.images}/") for group in result.groups)
        for name, scores in result.metrics.items():
            scored = ~np.isnan(scores.values)
            for lang in dict.fromkeys(langs[scored].tolist()):
                rows = scored & (langs == lang)
                self._add_language(name, lang, scores.statistics[rows], keys[rows])
            if scored.any():
                self._signatures[name].append(scores.signature)

    def _add_language(self, name: str, lang: str, statistics: Floats, keys: np.ndarray) -> None:
        totals = exact_sums(statistics)
        before = self._totals[name].get(lang, [0] * len(totals))
        self._totals[name][lang] = [one + other for one, other in zip(before, totals, strict=True)]
        self._scored[name][lang] = self._scored[name].get(lang, 0) + len(statistics)
        if self._job.resamples:
            sums = resampled_sums(statistics, keys, self._job.resamples, self._job.seed)
            key = f"{name}/{lang}"
            self._resampled[key] = self._resampled.get(key, 0.0) + sums

    def content(self) -> dict[str, Any]:
        """Sums are whole numbers in hexadecimal: see `exact_sum`."""
        return {
            name: {
                "signatures": self._signatures[name],
                "languages": {
                    lang: {"sums": [f"{total:x}" for total in totals], "scored": self._scored[name][lang]}
                    for lang, totals in of_metric.items()
                },
            }
            for name, of_metric in self._totals.items()
        }

    def resampled(self) -> bytes:
        out = io.BytesIO()
        arrays: dict[str, Any] = dict(self._resampled)
        np.savez(out, **arrays)
        return out.getvalue()

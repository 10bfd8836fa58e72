"""`score_partitions`: which partitions are left, who scores them, and what their sums say of the whole."""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np

from caplens.arrays import Floats
from caplens.embed.engine import Engine
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.cider import Cider, pools_languages
from caplens.metrics.clip_cider import ClipCider
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import build_metrics, needs_encoder
from caplens.metrics.scoring import KeepColumns
from caplens.partitions.folders import JOB, StorageFolder, arrow_library, as_url
from caplens.partitions.frequencies import FOLDER as FREQUENCIES
from caplens.partitions.frequencies import add_counts, from_bytes, to_bytes
from caplens.partitions.inputs import Partition, list_partitions
from caplens.partitions.local import LocalRunner
from caplens.partitions.scoring import MANIFESTS, PartitionJob, counts_name
from caplens.partitions.signatures import merged_signature
from caplens.progress import logger, track
from caplens.results.score_summary import MetricSummary, ScoreSummary, SummaryScore
from caplens.stats import RESAMPLES, interval
from caplens.stats.exact import nearest_floats
from caplens.stats.means import mean_pool
from caplens.version import __version__

_RESULT = "result.json"
_NOT_SCORES = ("executor", "ray_address", "store", "keep_store", "workers", "batch_size", "device", "offline", "model", "df")
"""Options that do not change scores, and those that are named by their content instead."""
_MOST_WARNINGS = 20
_CONNECTIONS = 16
Manifest = Mapping[str, Any]


class Runner(Protocol):
    """Who carries out the work of a job: this process, or a cluster."""

    retries: int

    def count(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[None]: ...

    def score(self, job: PartitionJob, partitions: Sequence[Partition]) -> Iterator[dict[str, Any]]: ...

    def keep_vectors(self, job: PartitionJob) -> None: ...

    def close(self) -> None: ...


def score_partitions(
    captions: str | Path,
    output: str | Path,
    metrics: Sequence[str],
    *,
    images: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    keep_columns: KeepColumns = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    keep_vectors: bool = False,
    options: ScoringOptions | None = None,
) -> ScoreSummary:
    """Score captions partition by partition, on this machine or on a Ray cluster.

    Parameters
    ----------
    captions
        A file, a folder, or files by a name with wildcards; by path, or by a URL that pyarrow knows (`s3://…`). Parquet is split
        by groups of rows, JSON Lines by bytes; of other formats each file is a partition.
    output
        The folder or URL of the results. A job that was stopped goes on there; one with other metrics or options needs another.
    metrics
        Their names.
    images
        The folder or URL that names of images are relative to.
    columns
        Field -> the column that holds it.
    keep_columns
        Names of columns of the input that the scores carry, or True for all, as JSON.
    resamples, seed
        Of the Poisson bootstrap over images that gives the intervals of corpus scores; 0 resamples for none.
    keep_vectors
        Whether the vectors of images and texts are written below `output`, where a cluster computes them.
    options
        How captions are scored; with `executor="ray"`, on a cluster.

    Returns
    -------
    ScoreSummary
        The corpus scores; those of captions are in `output/scores`, and why some have none in `output/errors`.

    Raises
    ------
    InputError
        If something cannot be read or used, or the folder holds another job.

    Examples
    --------
    >>> result = caplens.score_partitions("captions/*.parquet", "scores", ["cider"])  # doctest: +SKIP
    >>> result["cider"].total.value  # doctest: +SKIP
    """
    options = options or ScoringOptions()
    arrow_library()
    if not metrics or not all(isinstance(name, str) for name in metrics):
        raise InputError("name the metrics: partitions are scored in other processes, which make them anew.")
    here = replace(options, executor="local", ray_address=None)
    engine = here.engine() if any(map(needs_encoder, metrics)) else None
    built = build_metrics(list(metrics), here if engine is None else replace(here, model=engine))
    _check_by_caption(built)
    partitions = list_partitions(captions)
    job = PartitionJob(
        _place(output), tuple(metrics), None if images is None else _place(images), dict(columns or {}), keep_columns, resamples,
        seed, options,
    )  # fmt: skip
    job = _identified(job, engine)
    runner = _runner(options, engine)
    try:
        summary = _carried_out(job, partitions, built, runner)
        if keep_vectors:
            runner.keep_vectors(job)
    finally:
        runner.close()
    # In its own folder, which may be moved.
    content = replace(summary, folder=".").to_dict()
    StorageFolder(job.output).write((json.dumps(content, indent=1) + "\n").encode(), _RESULT)
    return summary


def _carried_out(job: PartitionJob, partitions: Sequence[Partition], metrics: Sequence[Metric], runner: Runner) -> ScoreSummary:
    """Score the partitions that no earlier run has finished, and add up all of them."""
    if job.options.df is None and any(isinstance(metric, Cider | ClipCider) for metric in metrics):
        job = _counted(job, partitions, runner)
    done = _finished(job, partitions, [metric.name for metric in metrics])
    reused = len(done)
    if reused:
        logger.info(f"{reused:,} of {len(partitions):,} partitions are there already")
    left = [partition for partition in partitions if partition not in done]
    for manifest in track(runner.score(job, left), "scoring partitions", len(left)):
        done[Partition(**manifest["partition"])] = manifest
    return _summary(job, metrics, [done[partition] for partition in partitions], reused, runner.retries)


def _check_by_caption(metrics: Sequence[Metric]) -> None:
    name = next((metric.name for metric in metrics if metric.needs_all_captions), None)
    if name is not None:
        raise InputError(f"{name} needs all captions at once, and cannot be computed partition by partition.")


def _place(place: str | Path) -> str:
    """A URL, or the whole path, which means the same in every process."""
    return as_url(place) or str(Path(place).absolute())


def _identified(job: PartitionJob, engine: Engine | None) -> PartitionJob:
    """The job with a hash of all that changes its scores; an error if the folder holds another job."""
    options = job.options
    about: dict[str, Any] = {
        "caplens": __version__,
        "metrics": list(job.metrics),
        "images": job.images,
        "columns": job.columns,
        "keep_columns": job.keep_columns,
        "resamples": job.resamples,
        "seed": job.seed,
        **{field.name: str(getattr(options, field.name)) for field in fields(options) if field.name not in _NOT_SCORES},
    }
    if engine is not None:
        about["model"] = f"{engine.backbone.name}@{engine.backbone.fingerprint}"
    if options.df is not None and (frequency := options.document_frequency()) is not None:
        about["df"] = frequency.label
    folder = StorageFolder(job.output)
    before = folder.read(JOB)
    if before is not None:
        _check_equal(_object(before), about, job.output)
    else:
        folder.write((json.dumps(about, indent=1) + "\n").encode(), JOB)
    return replace(job, identity=hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest())


def _object(content: bytes) -> Manifest:
    """A JSON object; an empty one for a file that holds something else."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _check_equal(before: Manifest, about: Manifest, place: str) -> None:
    other = sorted(name for name in {*before, *about} if before.get(name) != about.get(name))
    if other:
        raise InputError(
            f"{place}: this folder holds the scores of another job, which differs in {', '.join(other)}. Choose another folder."
        )


def _runner(options: ScoringOptions, engine: Engine | None) -> Runner:
    if options.executor == "local":
        return LocalRunner(engine)
    from caplens.partitions.cluster import RayRunner

    return RayRunner(engine, options)


def _counted(job: PartitionJob, partitions: Sequence[Partition], runner: Runner) -> PartitionJob:
    """The job with the document frequencies of all partitions, which are part of what changes its scores."""
    folder = StorageFolder(job.output)
    present = folder.files(FREQUENCIES)
    left = [partition for partition in partitions if counts_name(job, partition) not in present]
    for _ in track(runner.count(job, left), "counting n-grams", len(left)):
        pass
    content = to_bytes(add_counts(_counts_of(folder, job, partition) for partition in partitions))
    digest = hashlib.sha256(content).hexdigest()
    name = f"corpus-{digest[:16]}.npz"
    folder.write(content, FREQUENCIES, name)
    return replace(job, frequency=(name, digest), identity=hashlib.sha256(f"{job.identity}{digest}".encode()).hexdigest())


def _counts_of(folder: StorageFolder, job: PartitionJob, partition: Partition) -> Any:
    name = counts_name(job, partition)
    try:
        return from_bytes(folder.read(FREQUENCIES, name) or b"")
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise InputError(f"{folder.place}/{FREQUENCIES}/{name}: this file is damaged. Remove it, and start again.") from None


def _finished(job: PartitionJob, partitions: Sequence[Partition], metrics: Sequence[str]) -> dict[Partition, Manifest]:
    """The manifests of partitions that an earlier run of this job scored, and whose files are whole."""
    folder = StorageFolder(job.output)
    present = folder.files(MANIFESTS)
    candidates = [partition for partition in partitions if f"{partition.name}.json" in present]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        manifests = pool.map(lambda partition: _intact(folder, job, partition, metrics), candidates)
        return {
            partition: manifest
            for partition, manifest in zip(candidates, track(manifests, "checking partitions", len(candidates)), strict=True)
            if manifest is not None
        }


def _intact(folder: StorageFolder, job: PartitionJob, partition: Partition, metrics: Sequence[str]) -> Manifest | None:
    try:
        manifest = _object(folder.read(MANIFESTS, f"{partition.name}.json") or b"")
        whole = (
            manifest["job"] == job.identity
            and Partition(**manifest["partition"]) == partition
            and f"{MANIFESTS}/{partition.name}.npz" in manifest["files"]
            and all(_digest(folder, path) == digest for path, digest in manifest["files"].items())
            and _has_sums(manifest, metrics)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if whole else None


def _has_sums(manifest: Manifest, metrics: Sequence[str]) -> bool:
    """Whether the corpus scores can be computed from a manifest, which somebody may have edited."""
    for name in metrics:
        signatures, languages = manifest["metrics"][name]["signatures"], manifest["metrics"][name]["languages"]
        numbers = [int(total, 16) for sums in languages.values() for total in sums["sums"]]
        counts = [manifest["rows"], manifest["failed"], *(sums["scored"] for sums in languages.values())]
        texts = [*signatures, *manifest["warnings"]]
        if not all(isinstance(one, int) for one in (*numbers, *counts)) or not all(isinstance(text, str) for text in texts):
            return False
    return True


def _digest(folder: StorageFolder, path: str) -> str | None:
    content = folder.read(*path.split("/"))
    return None if content is None else hashlib.sha256(content).hexdigest()


def _summary(
    job: PartitionJob, metrics: Sequence[Metric], manifests: Sequence[Manifest], reused: int, retries: int
) -> ScoreSummary:
    """The corpus scores from the sums of all partitions."""
    resampled = _resampled(job, manifests) if job.resamples else {}
    entries = {metric.name: _entry(metric, [m["metrics"][metric.name] for m in manifests], resampled) for metric in metrics}
    rows, failed = (sum(manifest[name] for manifest in manifests) for name in ("rows", "failed"))
    if not rows:
        raise InputError("there are no captions in the input. Name files that have some.")
    counted = Counter(warning for manifest in manifests for warning in manifest["warnings"])
    warnings = [f"{warning} (in {count:,} partitions)" if count > 1 else warning for warning, count in counted.items()]
    shown = warnings[:_MOST_WARNINGS]
    if len(warnings) > len(shown):
        shown.append(f"… and {len(warnings) - len(shown):,} more warnings, in {job.output}/{MANIFESTS}.")
    if not any(entry.total.scored for entry in entries.values()):
        shown.append(f"no caption has a score; see {job.output}/errors.")
    return ScoreSummary(job.output, rows, failed, len(manifests), entries, shown, reused, retries)


def _entry(metric: Metric, parts: Sequence[Manifest], resampled: Mapping[str, Floats]) -> MetricSummary:
    totals: dict[str, list[int]] = {}
    scored: dict[str, int] = {}
    for part in parts:
        for lang, sums in part["languages"].items():
            numbers = [int(total, 16) for total in sums["sums"]]
            totals[lang] = [one + other for one, other in zip(totals.get(lang, [0] * len(numbers)), numbers, strict=True)]
            scored[lang] = scored.get(lang, 0) + sums["scored"]
    pool = getattr(metric, "pool", mean_pool)

    def score_of(langs: Sequence[str]) -> SummaryScore:
        count = sum(scored[lang] for lang in langs)
        if not count:
            return SummaryScore(float("nan"), float("nan"), float("nan"), 0)
        value = float(pool(nearest_floats(map(sum, zip(*(totals[lang] for lang in langs), strict=True)))))
        draws = [resampled[f"{metric.name}/{lang}"] for lang in langs if f"{metric.name}/{lang}" in resampled]
        low, high = interval(pool(np.sum(draws, axis=0))) if draws else (float("nan"), float("nan"))
        return SummaryScore(value, low, high, count)

    langs = sorted(totals)
    total = score_of(langs)
    if len(langs) > 1 and not pools_languages(metric.name):
        total = SummaryScore(float("nan"), float("nan"), float("nan"), total.scored)
    signatures = [signature for part in parts for signature in part["signatures"]]
    return MetricSummary(total, {lang: score_of([lang]) for lang in langs}, merged_signature(signatures))


def _resampled(job: PartitionJob, manifests: Sequence[Manifest]) -> dict[str, Floats]:
    """The sums of all partitions on each resample, by metric and language."""
    folder, sums = StorageFolder(job.output), dict[str, Floats]()
    for manifest in track(manifests, "adding resamples", len(manifests)):
        content = folder.read(MANIFESTS, f"{Partition(**manifest['partition']).name}.npz")
        if content is None:
            continue
        with np.load(io.BytesIO(content)) as arrays:
            for key in arrays.files:
                sums[key] = sums.get(key, 0.0) + arrays[key]
    return sums

"""How long a job will take and what it will cost: its size is counted, and speeds are measured on a sample."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from caplens.data.extracted import remove_extracted
from caplens.data.formats.toml_document import read_toml
from caplens.data.sample import Sample
from caplens.embed import Engine, Text
from caplens.embed.store import Store
from caplens.errors import InputError
from caplens.metrics.base import Metric, missing_input
from caplens.metrics.embedding import image_of
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import build_metrics, needs_encoder
from caplens.metrics.scoring import run_metrics
from caplens.partitions.folders import as_url
from caplens.partitions.inputs import Partition, list_partitions, partition_samples
from caplens.partitions.scoring import slices
from caplens.progress import track
from caplens.results.job_plan import JobPlan, JobSize, MachineCost
from caplens.stats.poisson import GroupKeys, group_keys

READ_ROWS = 1_000_000
SAMPLE = 64
_CAPTIONS_PER_IMAGE = 8
"""Captions are encoded faster than images, so that more of them are needed to measure how fast."""
_ROWS = 8192
"""Captions by which what needs no model is measured: of few, what starts once would weigh too much."""
_MERGED_AT = 1 << 22
_FIRST = 1000
"""Partitions that are read first, evenly spaced."""
_UNKNOWN = float("nan")
_MACHINES = "machines.toml"


@dataclass(frozen=True)
class MachineKind:
    """A kind of machine.

    Attributes
    ----------
    name
        What it is called.
    cores
        How many processors it has.
    price
        US dollars per hour; NaN where it is not known.
    gpu
        Whether it has one; such a machine has only the rates that were measured on it.
    rates
        Model -> images and texts per second.
    """

    name: str
    cores: int
    price: float
    gpu: bool
    rates: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Rates:
    """Images, texts, and captions without the model, that this machine takes per second."""

    images: float
    texts: float
    rows: float


class _Distinct:
    """How many different keys there are, in eight bytes each."""

    def __init__(self) -> None:
        self._parts: list[GroupKeys] = []
        self._waiting = 0

    def add(self, keys: GroupKeys) -> None:
        self._parts.append(np.unique(keys))
        self._waiting += len(self._parts[-1])
        if self._waiting > _MERGED_AT:
            self._merge()

    def _merge(self) -> None:
        self._parts = [np.unique(np.concatenate(self._parts))] if self._parts else []
        self._waiting = 0

    def __len__(self) -> int:
        self._merge()
        return sum(map(len, self._parts))


def plan_job(
    captions: str | Path,
    metrics: Sequence[str],
    *,
    images: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    machines: str | Path | None = None,
    machine_count: int = 1,
    price: float | None = None,
    sample: int = SAMPLE,
    read_rows: int = READ_ROWS,
    options: ScoringOptions | None = None,
) -> JobPlan:
    """How long `score_partitions` would take and what it would cost, here and on other machines.

    Parameters
    ----------
    captions, metrics, images, columns, options
        As for `score_partitions`.
    machines
        A TOML file of kinds of machines, in place of those that caplens knows: `[[machine]]` with `name`, `cores` and `price` (US
        dollars per hour), `gpu = true` where it has one, and `[machine.rates]` with images and texts per second by model.
    machine_count
        How many machines share the job.
    price
        What an hour of this machine costs, in US dollars.
    sample
        Images that are encoded to measure the model's speed.
    read_rows
        Captions that are read to count different images and texts; of a larger input, the rest is taken to be like them.

    Returns
    -------
    JobPlan
        The size of the job, and hours and money by machine. No scores are written.

    Raises
    ------
    InputError
        If something cannot be read, or no caption of the sample can be scored.

    Examples
    --------
    >>> plan = caplens.plan_job("captions/*.parquet", ["clipscore"], images="photos")  # doctest: +SKIP
    >>> plan.machines[0].hours  # doctest: +SKIP
    """
    options = replace(options or ScoringOptions(), executor="local", ray_address=None, store=Store.temporary())
    for name, value in (("machine_count", machine_count), ("sample", sample), ("read_rows", read_rows)):
        if value < 1:
            raise InputError(f"{name!r} must be at least 1, not {value}.")
    kinds = read_machines(machines)
    partitions, columns = list_partitions(captions), dict(columns or {})
    engine = options.engine() if any(map(needs_encoder, metrics)) else None
    built = build_metrics(list(metrics), options if engine is None else replace(options, model=engine))
    try:
        size, rows_read = _measure_size(partitions, columns, built, read_rows)
        rates = _measure_rates(_sample(partitions, columns, images, built, sample), built, engine)
    finally:
        remove_extracted()
        if engine is not None:
            engine.close()
    model = "" if engine is None else engine.backbone.name
    here = MachineKind("this machine", os.cpu_count() or 1, _UNKNOWN if price is None else price, False, {})
    costs = [_cost(kind, model, size, rates, machine_count, is_here=kind is here) for kind in (here, *kinds)]
    return JobPlan(model, size, rows_read, len(partitions), rates.rows, costs)


def read_machines(path: str | Path | None = None) -> list[MachineKind]:
    """The kinds of machines in a TOML file, or those that caplens knows."""
    if path is None:
        with as_file(files("caplens.partitions").joinpath(_MACHINES)) as shipped:
            return read_machines(shipped)
    content = read_toml(Path(path), "list of machines")
    try:
        kinds = [
            MachineKind(
                str(entry["name"]), int(entry["cores"]), float(entry.get("price", _UNKNOWN)), bool(entry.get("gpu", False)),
                {str(model): (float(rate["images"]), float(rate["texts"])) for model, rate in entry.get("rates", {}).items()},
            )
            for entry in content["machine"]
        ]  # fmt: skip
        rates = [rate for kind in kinds for pair in kind.rates.values() for rate in pair]
        prices = [kind.price for kind in kinds if kind.price == kind.price]
        if not all(0 < rate < math.inf for rate in [*(kind.cores for kind in kinds), *rates]) or not all(
            0 <= price < math.inf for price in prices
        ):
            raise ValueError("cores and rates are above 0, and prices not below")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: this is not a list of machines ({type(error).__name__}: {error}). Write [[machine]] with name, cores and"
            " price, and rates by model."
        ) from None
    return kinds


def _measure_size(
    partitions: Sequence[Partition], columns: Mapping[str, str], metrics: Sequence[Metric], most: int
) -> tuple[JobSize, int]:
    """The size of the job, and how many captions were read for that."""
    encoding = [metric for metric in metrics if "encoder" in metric.needs]
    with_references = any("references" in metric.needs for metric in encoding)
    images, texts, rows, read = _Distinct(), _Distinct(), 0, 0
    for partition in track(_spread(partitions), "counting", len(partitions)):
        if rows >= most:
            break
        with partition_samples(partition, columns) as samples:
            while portion := list(islice(samples, _ROWS)):
                rows += len(portion)
                images.add(group_keys(sample.group for sample in portion))
                texts.add(group_keys(text for sample in portion for text in _texts(sample, with_references)))
        remove_extracted()
        read += 1
    if not rows:
        raise InputError("there are no captions in the input. Name files that have some.")
    looks = any("image" in metric.needs for metric in encoding)
    counts = (rows, len(images) if looks else 0, len(texts) if encoding else 0)
    return JobSize(*(round(number * len(partitions) / read) for number in counts)), rows


def _spread(partitions: Sequence[Partition]) -> Iterator[Partition]:
    """All partitions, the first of them from all over the input, whose parts may differ."""
    step = max(1, len(partitions) // _FIRST)
    for start in range(step):
        yield from partitions[start::step]


def _texts(sample: Sample, with_references: bool) -> Iterator[str]:
    yield sample.caption or ""
    if with_references:
        yield from sample.references


def _sample(
    partitions: Sequence[Partition], columns: Mapping[str, str], images: str | Path | None, metrics: Sequence[Metric], most: int
) -> list[Sample]:
    """Captions of so many images, all of which can be scored."""
    needs = frozenset[str]().union(*(metric.needs for metric in metrics)) - {"encoder"}
    place = None if images is None else as_url(images) or str(Path(images).absolute())
    chosen: list[Sample] = []
    groups: set[str] = set()
    reason = "there are no captions"
    for partition in partitions:
        with partition_samples(partition, columns) as samples:
            for portion in slices(islice(samples, most * _CAPTIONS_PER_IMAGE), place):
                for sample in portion:
                    error = missing_input(sample, needs)
                    if error is not None:
                        reason = error.reason
                    elif sample.group in groups or len(groups) < most:
                        groups.add(sample.group)
                        chosen.append(sample)
        if len(groups) >= most or len(chosen) >= most * _CAPTIONS_PER_IMAGE:
            break
    if not chosen:
        raise InputError(f"no caption can be scored to measure how fast this machine is: {reason}.")
    return chosen[: most * _CAPTIONS_PER_IMAGE]


def _measure_rates(samples: Sequence[Sample], metrics: Sequence[Metric], engine: Engine | None) -> Rates:
    images_rate = texts_rate = _UNKNOWN
    if engine is not None:
        photos = list({sample.group: image_of(sample) for sample in samples if sample.image is not None}.values())
        texts = list(dict.fromkeys(Text(sample.caption or "", "", sample.lang or "") for sample in samples))
        # The first of each opens the model.
        engine.prepare(photos[:1], texts[:1])
        if photos[1:]:
            images_rate = len(photos[1:]) / _seconds(lambda: engine.prepare(photos[1:], []))
        if texts[1:]:
            texts_rate = len(texts[1:]) / _seconds(lambda: engine.prepare([], texts[1:]))
    # With the prompts of the metrics, so that afterwards nothing is left to be encoded; an error if nothing can be scored.
    run_metrics(samples, metrics)
    many = list(islice(cycle(samples), _ROWS))
    rows_rate = len(many) / _seconds(lambda: run_metrics(many, metrics, require_scores=False))
    return Rates(images_rate, texts_rate, rows_rate)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return max(time.perf_counter() - start, 1e-9)


def _cost(kind: MachineKind, model: str, size: JobSize, measured: Rates, count: int, *, is_here: bool) -> MachineCost:
    """Hours and money of a job on machines of a kind."""
    cores = kind.cores / (os.cpu_count() or 1)
    if is_here:
        images, texts, source = measured.images, measured.texts, "measured"
    elif model in kind.rates:
        (images, texts), source = kind.rates[model], "measured before"
    elif kind.gpu and model:
        images, texts, source = _UNKNOWN, _UNKNOWN, "run this there to know"
    else:
        images, texts, source = measured.images * cores, measured.texts * cores, "this machine, by cores"
    # One after the other: an upper bound, since they overlap where there is more than one core.
    seconds = size.rows / (measured.rows * (1.0 if is_here else cores))
    seconds += size.images / images if size.images else 0.0
    seconds += size.texts / texts if size.texts else 0.0
    hours = seconds / 3600 / count
    return MachineCost(kind.name, count, images, texts, hours, hours * count * kind.price, source)

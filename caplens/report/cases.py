"""Captions with their scores, and the choice of those worth looking at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from caplens.arrays import Floats
from caplens.benchmarks import get_benchmark
from caplens.benchmarks.evaluate import load_checked
from caplens.data import Sample, SampleFile, read_references, samples_by_system, with_images
from caplens.data.languages import base_language
from caplens.errors import InputError, option
from caplens.report.documents import Document, InputPaths
from caplens.results.agreement import AgreementResult
from caplens.results.comparison import Comparison
from caplens.results.scores import ScoreResult

MOST = 200
_OF_EACH = 12
_COMPARED = 3
"""Metrics, of which each two are searched for disagreements."""
_FEW = 4
"""Of fewer captions than this, all are best and worst."""
_DISAGREE = 0.3
"""Of all captions, those that lie between where two rank the same one."""


@dataclass(frozen=True)
class Case:
    """One caption, with every score that it got; what people gave it, if they did; and why it is worth looking at."""

    sample: Sample
    scores: Mapping[str, float]
    human: float | None = None
    reasons: tuple[str, ...] = ()


def find_cases(document: Document, paths: InputPaths) -> list[Case]:
    """The captions of a result with their scores; an error where the captions are not at hand or are others by now."""
    result = document.result
    if isinstance(result, ScoreResult):
        captions = SampleFile(_captions(document, paths), mark_repeats=True)
        return _cases_of(result, list(_joined(captions, document, paths)), document.lang)
    if isinstance(result, Comparison):
        joined = {name: list(_joined(samples, document, paths)) for name, samples in _systems(document, paths).items()}
        return _cases_of_systems(result, joined)
    if isinstance(result, AgreementResult):
        return _cases_of_bench(result, _judged(result, document, paths))
    return []


def _cases_of(results: ScoreResult, samples: Sequence[Sample], lang: str = "en") -> list[Case]:
    """`samples` are those that were scored, in the same order; `lang` is the language of those that name none."""
    scored = list(zip(results.ids, results.langs, results.systems, strict=True))
    if [(sample.id, sample.lang, sample.system) for sample in samples] != scored:
        raise InputError(f"the captions are not those that were scored; name the file that was, with {option('captions')}.")
    return [
        Case(
            replace(sample, lang=base_language(sample.lang or lang)),
            {name: float(scores.values[row]) for name, scores in results.metrics.items()},
            float(np.mean(sample.rating_values)) if sample.ratings else None,
        )
        for row, sample in enumerate(samples)
    ]


def _cases_of_systems(comparison: Comparison, systems: Mapping[str, Sequence[Sample]]) -> list[Case]:
    made = []
    for name in comparison.systems:
        by_key = {sample.key: sample for sample in systems.get(name, ())}
        for row, (identifier, tag) in enumerate(zip(comparison.ids, comparison.langs, strict=True)):
            key = (identifier, None if tag is None else base_language(tag))
            if key not in by_key:
                raise InputError(
                    f"the captions of {name} are not those that were compared; name the file that was, with {option('captions')}."
                )
            scores = {metric: float(found[name][row]) for metric, found in comparison.values.items()}
            made.append(Case(replace(by_key[key], system=name), scores))
    return made


def _cases_of_bench(results: AgreementResult, samples: Sequence[Sample]) -> list[Case]:
    by_id = {sample.id: sample for sample in samples}
    if not by_id.keys() >= set(results.ids):
        raise InputError(f"the benchmark's files are not those that were used; name their folder with {option('data')}.")
    # A caption that several people judged may be several data points.
    rows: dict[tuple[str, str | None], list[int]] = {}
    for row, identifier in enumerate(results.ids):
        rows.setdefault((by_id[identifier].group, by_id[identifier].caption), []).append(row)
    return [
        Case(
            replace(by_id[results.ids[same[0]]], lang=by_id[results.ids[same[0]]].lang or results.lang),
            {metric: float(values[same[0]]) for metric, values in results.scores.items()},
            None if results.human is None else float(np.nanmean(results.human[same])),
        )
        for same in rows.values()
    ]


def _systems(document: Document, paths: InputPaths) -> Mapping[str, Iterable[Sample]]:
    """The captions of each system, from a file for each or from one."""
    if paths.captions:
        return samples_by_system(paths.captions)
    named = document.inputs.get("systems")
    if named:
        return {name: SampleFile(_path(document, path)) for name, path in named.items()}
    return samples_by_system([_captions(document, paths)])


def _captions(document: Document, paths: InputPaths) -> Path:
    if len(paths.captions) > 1:
        raise InputError(f"this result is about one file of captions; several were named with {option('captions')}.")
    if paths.captions:
        return paths.captions[0]
    if not document.inputs.get("captions"):
        raise InputError(f"the file does not say where the captions are; name them with {option('captions')}.")
    return _path(document, document.inputs["captions"])


def _path(document: Document, name: Any) -> Path:
    path = document.folder / str(name)
    if not path.exists():
        raise InputError(f"{path}: this file no longer exists.")
    return path


def _joined(samples: Any, document: Document, paths: InputPaths) -> Iterator[Sample]:
    """With references and images, if any were paths."""
    references, images = (document.inputs.get(name) for name in ("references", "images"))
    source = paths.references or (_path(document, references) if references else None)
    folder = paths.images or (_path(document, images) if images else None)
    if source is not None:
        samples = read_references(source).joined(samples, document.inputs.get("lang"))
    yield from samples if folder is None else with_images(samples, folder)


def _judged(result: AgreementResult, document: Document, paths: InputPaths) -> list[Sample]:
    named = document.inputs.get("data")
    data = paths.data or (_path(document, named) if named else None)
    if data is None:
        raise InputError(f"the file does not say where the benchmark is; name its folder with {option('data')}.")
    benchmark = get_benchmark(result.benchmark)
    home = benchmark.home(data)
    samples = load_checked(benchmark, home, result.protocol, result.lang).samples
    images = document.inputs.get("images")
    folder = paths.images or (_path(document, images) if images else None)
    if folder is None:
        folder = next((home / name for name in benchmark.image_folders if (home / name).is_dir()), None)
    return samples if folder is None else list(with_images(samples, folder))


def choose(cases: Sequence[Case]) -> list[Case]:
    """The best, the worst, and those about which scores and people, or two scores, or systems disagree most, and why each is
    there; behind them all others, where there is room for all.
    """
    orders = _orders(cases) if len(cases) >= _FEW else {}
    each = max(1, min(_OF_EACH, MOST // max(1, len(orders)), len(cases) // _FEW))
    reasons: dict[int, list[str]] = {}
    for reason, order in orders.items():
        for row in _first(order, cases, each):
            reasons.setdefault(row, []).append(reason)
    if len(cases) <= MOST:
        for row in range(len(cases)):
            reasons.setdefault(row, [])
    return [replace(cases[row], reasons=tuple(some)) for row, some in list(reasons.items())[:MOST]]


def _orders(cases: Sequence[Case]) -> dict[str, Floats]:
    """Reason to look at a caption -> how strong it is for each; NaN where there is none."""
    metrics = list(dict.fromkeys(name for case in cases for name in case.scores))
    ranks = {metric: _ranks([case.scores.get(metric, np.nan) for case in cases]) for metric in metrics}
    orders: dict[str, Floats] = {}
    if any(case.human is not None for case in cases):
        people = _ranks([np.nan if case.human is None else case.human for case in cases])
        for metric in metrics:
            orders[f"higher by {metric} than by people"] = _apart(ranks[metric], people)
            orders[f"lower by {metric} than by people"] = _apart(people, ranks[metric])
    orders |= _between_systems(cases, metrics)
    for one, other in combinations(metrics[:_COMPARED], 2):
        orders[f"higher by {one} than by {other}"] = _apart(ranks[one], ranks[other])
        orders[f"higher by {other} than by {one}"] = _apart(ranks[other], ranks[one])
    for metric in metrics:
        orders[f"best by {metric}"] = ranks[metric]
        orders[f"worst by {metric}"] = -ranks[metric]
    return orders


def _apart(above: Floats, below: Floats) -> Floats:
    """How much higher the one ranks a caption than the other, where that is much."""
    return np.where(above - below > _DISAGREE, above - below, np.nan)


def _ranks(values: Sequence[float]) -> Floats:
    """From 0 to 1, ties being in the middle of their places; no ranks where all values are the same."""
    known = np.count_nonzero(~np.isnan(values))
    if known < 2 or np.nanmin(values) == np.nanmax(values):
        return np.full(len(values), np.nan)
    ranks: Floats = (rankdata(values, nan_policy="omit") - 1) / (known - 1)
    return ranks


def _first(order: Floats, cases: Sequence[Case], count: int) -> list[int]:
    """The highest, none twice: data sets hold the same caption of the same image several times."""
    chosen: dict[object, int] = {}
    for row in np.argsort(-np.where(np.isnan(order), -np.inf, order), kind="stable"):
        if np.isnan(order[row]) or len(chosen) == count:
            break
        sample = cases[row].sample
        chosen.setdefault((sample.group, sample.caption, sample.system), int(row))
    return list(chosen.values())


def _between_systems(cases: Sequence[Case], metrics: Sequence[str]) -> dict[str, Floats]:
    """How far apart the systems' captions of one image are; each system's caption of it is shown."""
    by_key: dict[object, list[int]] = {}
    for row, case in enumerate(cases):
        if case.sample.system is not None:
            by_key.setdefault(case.sample.key, []).append(row)
    several = [rows for rows in by_key.values() if len(rows) > 1]
    orders = {}
    for metric in metrics if several else ():
        order = np.full(len(cases), np.nan)
        for rows in several:
            order[rows] = np.ptp([cases[row].scores[metric] for row in rows])
        orders[f"systems differ by {metric}"] = order
    return orders

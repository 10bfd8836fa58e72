"""Results read back from the files that commands wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench import BenchResults, Comparison, CrossLanguage
from caplens.bench.evaluation import Contrast, Estimate
from caplens.bench.systems import SystemContrast, SystemScore
from caplens.data.files import Place, Source
from caplens.data.jsonl import read_rows
from caplens.data.reading import read_document
from caplens.errors import InputError
from caplens.metrics import Results
from caplens.metrics.base import Scores, mean_pool, mean_statistics
from caplens.perturb import Noticed, Robustness
from caplens.stats.arrays import Floats

_CURE = "A report is made of what 'caplens score … -o scores.json' and the like write, and of log.jsonl of training runs."


@dataclass(frozen=True)
class Training:
    """The log of a training run: stage -> lines."""

    stages: dict[str, list[Mapping[str, float]]]


@dataclass(frozen=True)
class ByLanguage:
    """Systems compared in each of several languages."""

    comparisons: dict[str, Comparison]


Found = Results | Comparison | ByLanguage | BenchResults | CrossLanguage | Robustness | Training


@dataclass(frozen=True)
class Document:
    """One result, and the files that it was made from, where its file names them."""

    name: str
    found: Found
    inputs: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    """What the names of inputs are relative to."""


def read_documents(path: Path) -> list[Document]:
    """The results in a file: one, but for a run of several benchmarks or languages."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Name a file that a command wrote with -o FILE.json, or a run's log.jsonl.")
    if path.suffix.lower() == ".jsonl":
        return [Document(path.parent.name or path.name, _training(path))]
    with Source(path) as source:
        if not source.text().lstrip("\ufeff \r\n\t").startswith("{"):
            raise InputError(f"{path}: this is no JSON of a result. {_CURE}")
    with Source(path) as source:
        content = read_document(source)
    inputs = content.get("inputs", {}) if isinstance(content, dict) else {}
    try:
        return [Document(name, found, inputs, path.parent) for name, found in _results(path.stem, content)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path}: this is no result, or one of another version of caplens ({type(error).__name__}: {error}). {_CURE}"
        ) from None


def _results(name: str, content: Mapping[str, Any]) -> list[tuple[str, Found]]:
    if "metrics" in content:
        return [(name, _scores(content))]
    if "systems" in content:
        return [(name, _comparison(content))]
    if "robustness" in content:
        return [(name, _robustness(content))]
    if "languages" in content:
        return [(name, ByLanguage({lang: _comparison(one) for lang, one in content["languages"].items()}))]
    if "benchmarks" in content:
        benchmarks: list[tuple[str, Found]] = [(name, _bench(one)) for one in content["benchmarks"]]
        return [*benchmarks, *((name, _across(one)) for one in content["across_languages"])]
    return [(name, _bench(content))]


def _scores(content: Mapping[str, Any]) -> Results:
    ids = content["ids"]
    results = Results(list(ids), list(ids), {}, warnings=list(content["warnings"]))
    results.langs = list(content.get("lang") or [None] * len(ids))
    results.systems = list(content.get("system") or [None] * len(ids))
    for name, one in content["metrics"].items():
        values = _floats(one["values"])
        if len(values) != len(ids):
            raise ValueError(f"{name} has {len(values)} values for {len(ids)} captions")
        # What resampling needs is not in the file: intervals are.
        results.metrics[name] = Scores(
            values, _float(one["corpus"]), one["signature"], mean_statistics(values), mean_pool, one.get("languages", {}), False
        )
        if "low" in one:
            results.intervals[name] = (_float(one["low"]), _float(one["high"]))
        results.language_intervals[name] = {
            lang: (_float(low), _float(high)) for lang, (low, high) in one.get("language_intervals", {}).items()
        }
    reasons = list(content["errors"].values())
    failed = np.flatnonzero(np.any([np.isnan(scores.values) for scores in results.metrics.values()], axis=0))
    results.problems = {int(row): why for row, why in zip(failed, reasons, strict=False)}
    return results


def _comparison(content: Mapping[str, Any]) -> Comparison:
    return Comparison(
        systems=list(content["systems"]),
        scores={
            metric: {system: SystemScore(**_numbers(score)) for system, score in found.items()}
            for metric, found in content["scores"].items()
        },
        contrasts=[SystemContrast(**_numbers(contrast)) for contrast in content["contrasts"]],
        signatures=dict(content["signatures"]),
        samples=content["counts"]["samples"],
        correction=content["correction"],
        failed=content["counts"]["failed"],
        warnings=list(content["warnings"]),
        ids=list(content["ids"]),
        langs=list(content.get("lang") or [None] * len(content["ids"])),
        values={
            metric: {system: _floats(values) for system, values in found.items()} for metric, found in content["values"].items()
        },
    )


def _bench(content: Mapping[str, Any]) -> BenchResults:
    counts = content["counts"]
    return BenchResults(
        benchmark=content["benchmark"],
        protocol=content["protocol"],
        lang=content["lang"],
        source=content["published"],
        results={
            metric: {name: Estimate(**_numbers(one, {"published", "ties"})) for name, one in found.items()}
            for metric, found in content["results"].items()
        },
        contrasts=[Contrast(**_numbers(contrast)) for contrast in content["contrasts"]],
        signatures=dict(content["signatures"]),
        rows=counts["rows"],
        images=counts["images"],
        failed=counts["failed"],
        without_image=counts["without_image"],
        resamples=content["resamples"],
        seed=content["seed"],
        warnings=list(content["warnings"]),
        ids=list(content["ids"]),
        captions=[],
        scores={metric: _floats(values) for metric, values in content["scores"].items()},
        human=np.array(content["human"], dtype=np.float64) if "human" in content else None,
    )


def _across(content: Mapping[str, Any]) -> CrossLanguage:
    return CrossLanguage(
        benchmark=content["benchmark"],
        langs=list(content["langs"]),
        items=content["items"],
        correlations={
            metric: {part: np.array([_floats(line) for line in matrix]) for part, matrix in parts.items()}
            for metric, parts in content["correlations"].items()
        },
        protocol=content["protocol"],
        known=dict(content["with_quality"]),
    )


def _robustness(content: Mapping[str, Any]) -> Robustness:
    return Robustness(
        found=[Noticed(**_numbers(one)) for one in content["robustness"]],
        impossible=dict(content["impossible"]),
        failed=content["counts"]["failed"],
        signatures=dict(content["signatures"]),
        warnings=list(content["warnings"]),
    )


def _training(path: Path) -> Training:
    stages: dict[str, list[Mapping[str, float]]] = {}
    with Source(path) as source:
        for place, row in read_rows(source):
            if not {"stage", "step", "loss"} <= row.keys() or not all(
                isinstance(value, int | float) for key, value in row.items() if key != "stage"
            ):
                raise InputError(f"{place}: a line of a training log has a stage, a step and a loss; this has not. {_CURE}")
            stages.setdefault(str(row["stage"]), []).append({key: float(value) for key, value in row.items() if key != "stage"})
    if not stages:
        raise InputError(f"{Place(path)}: the training log is empty.")
    return Training(stages)


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _floats(values: list[float | None]) -> Floats:
    return np.array([_float(value) for value in values])


def _numbers(record: Mapping[str, Any], may_lack: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """What JSON had to write as null is no number again, where a number belongs there."""
    return {key: float("nan") if value is None and key not in may_lack else value for key, value in record.items()}

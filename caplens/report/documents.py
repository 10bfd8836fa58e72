"""Results read back from the files that commands wrote."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench import BenchResults, Comparison, CrossLanguage
from caplens.bench.evaluation import Contrast, Estimate
from caplens.bench.systems import SystemContrast, SystemScore
from caplens.data.files import Place, Source
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
    path: Path | None = None
    """The file that it was read from, if it was."""

    @property
    def lang(self) -> str:
        """The language of captions that name none."""
        return str(self.inputs.get("lang") or "en")


_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, StopIteration, OSError)
"""What comes of a file that holds something else than it should."""


@contextmanager
def told(path: Path | None) -> Iterator[None]:
    """Files come from elsewhere: whatever is wrong with one is told, not raised. Results of this program are not such files."""
    try:
        yield
    except _WRONG as error:
        if path is None:
            raise
        raise InputError(
            f"{path}: this is no result, one of another version of caplens, or damaged ({type(error).__name__}: {error}). {_CURE}"
        ) from None


def read_documents(path: Path, name: str = "") -> list[Document]:
    """The results in a file: one, but for a run of several benchmarks or languages; called `name`, or after the file."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Name a file that a command wrote with -o FILE.json, or a run's log.jsonl.")
    if path.suffix.lower() == ".jsonl":
        return [Document(name or path.parent.name or path.name, _training(path), path=path)]
    with Source(path) as source:
        if not source.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
            raise InputError(f"{path}: this is no JSON of a result. {_CURE}")
    with Source(path) as source:
        content = read_document(source)
    with told(path):
        inputs = dict(content.get("inputs", {}))
        return [Document(title, found, inputs, path.parent, path) for title, found in _results(name or path.stem, content)]


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
        if benchmarks and isinstance(benchmarks[0][1], BenchResults):
            benchmarks[0][1].warnings.extend(f"{other} was not run: {why}" for other, why in content["not_run"].items())
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
            values, number(one["corpus"]), one["signature"], mean_statistics(values), mean_pool, one.get("languages", {}), False
        )
        if "low" in one:
            results.intervals[name] = (number(one["low"]), number(one["high"]))
        results.language_intervals[name] = {
            lang: (number(low), number(high)) for lang, (low, high) in one.get("language_intervals", {}).items()
        }
    failed = np.flatnonzero(np.any([np.isnan(scores.values) for scores in results.metrics.values()], axis=0))
    results.problems = dict.fromkeys(failed.tolist(), "")
    results.problems = {row: content["errors"].get(label, "") for row, label in zip(failed.tolist(), results.errors, strict=True)}
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
        benchmark=str(content["benchmark"]),
        protocol=str(content["protocol"]),
        lang=str(content["lang"]),
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
        lines = source.text().splitlines()
    for number, line in enumerate(lines, 1):
        place = Place(path, number)
        try:
            row = json.loads(line)
            values = {key: float(value) for key, value in row.items() if key != "stage"}
            known = {"stage"} <= row.keys() and {"step", "loss"} <= values.keys() and np.isfinite(list(values.values())).all()
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            if number == len(lines) > 1:
                # The end of a line that was being written when the run was stopped.
                break
            known = False
        if not known:
            raise InputError(
                f"{place}: a line of a training log has a stage, and numbers for step and loss; this has not. {_CURE}"
            )
        stages.setdefault(str(row["stage"]), []).append(values)
    if not stages:
        raise InputError(f"{path}: the training log is empty.")
    return Training(stages)


def number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _floats(values: list[float | None]) -> Floats:
    return np.array([number(value) for value in values])


def _numbers(record: Mapping[str, Any], may_lack: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """What JSON had to write as null is no number again, where a number belongs there."""
    return {key: float("nan") if value is None and key not in may_lack else value for key, value in record.items()}

"""One pass over the samples that feeds every metric of a run."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric
from caplens.metrics.results import Results

_BATCH = 2048


def run(samples: Iterable[Sample], metrics: Sequence[Metric], *, strict: bool = False) -> Results:
    """Score `samples` with `metrics`.

    A sample that a metric cannot score gets NaN there and its reason in `errors`; with `strict` the first one stops
    the run.
    """
    if not metrics:
        raise InputError("no metric was chosen; name at least one.")
    collectors: dict[Hashable, Collector] = {}
    needs: dict[Hashable, frozenset[str]] = {}
    key_of: list[Hashable] = []
    for metric in metrics:
        collector = metric.collector()
        collectors.setdefault(collector.key, collector)
        needs[collector.key] = metric.requires
        key_of.append(collector.key)

    ids: list[str] = []
    groups: list[str] = []
    errors: dict[str, str] = {}
    failed = 0
    scored = dict.fromkeys(collectors, 0)
    for batch in _batched(samples):
        start = len(ids)
        ids.extend(sample.id for sample in batch)
        groups.extend(sample.group for sample in batch)
        problems: dict[int, str] = {}
        for key, collector in collectors.items():
            found = {index: problem for index, sample in enumerate(batch) if (problem := _problem(sample, needs[key]))}
            good = [index for index in range(len(batch)) if index not in found]
            collector.add([start + index for index in good], [batch[index] for index in good])
            scored[key] += len(good)
            problems |= found
        for index, problem in sorted(problems.items()):
            if strict:
                raise InputError(f"sample {batch[index].id!r}: {problem}.")
            previous = errors.get(batch[index].id)
            errors[batch[index].id] = problem if previous in (None, problem) else f"{previous}; {problem}"
        failed += len(problems)

    if not ids:
        raise InputError("there are no samples to score.")
    for key, count in scored.items():
        if not count:
            names = ", ".join(metric.name for metric, its in zip(metrics, key_of, strict=True) if its == key)
            reason = next(iter(errors.values()))
            hint = " Give them with --references FILE or as 'references' in the file." if "references" in reason else ""
            raise InputError(f"none of the {len(ids)} samples can be scored with {names}: {reason}.{hint}")
    warnings = [warning for collector in collectors.values() for warning in collector.warnings()]
    return Results(
        ids=ids,
        groups=groups,
        metrics={metric.name: metric.compute(collectors[key], len(ids)) for metric, key in zip(metrics, key_of, strict=True)},
        errors=errors,
        failed=failed,
        warnings=list(dict.fromkeys(warnings)),
    )


_LACKS: dict[str, tuple[Callable[[Sample], bool], str]] = {
    "caption": (lambda sample: not (sample.caption and sample.caption.strip()), "the caption is empty"),
    "references": (lambda sample: not any(text.strip() for text in sample.references), "there are no references"),
}


def _problem(sample: Sample, requires: frozenset[str]) -> str | None:
    for need, (lacking, sentence) in _LACKS.items():
        if need in requires and lacking(sample):
            return sentence
    return None


def _batched(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    iterator = iter(samples)
    while batch := list(islice(iterator, _BATCH)):
        yield batch

"""One pass over the samples that feeds every metric of a run."""

from collections.abc import Hashable, Iterable, Sequence

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, batched, problem
from caplens.metrics.results import Results


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
    for batch in batched(samples):
        start = len(ids)
        ids.extend(sample.id for sample in batch)
        groups.extend(sample.group for sample in batch)
        problems: dict[int, str] = {}
        for key, collector in collectors.items():
            found = {index: lack for index, sample in enumerate(batch) if (lack := problem(sample, needs[key]))}
            good = [index for index in range(len(batch)) if index not in found]
            collector.add([start + index for index in good], [batch[index] for index in good])
            scored[key] += len(good)
            problems |= found
        for index, lack in sorted(problems.items()):
            if strict:
                raise InputError(f"sample {batch[index].id!r}: {lack}.")
            previous = errors.get(batch[index].id)
            errors[batch[index].id] = lack if previous in (None, lack) else f"{previous}; {lack}"
        failed += len(problems)

    if not ids:
        raise InputError("there are no samples to score.")
    for key, count in scored.items():
        if not count:
            names = ", ".join(metric.name for metric, its in zip(metrics, key_of, strict=True) if its == key)
            reason = next(iter(errors.values()))
            hint = " Give them with --references FILE or as 'references' in the file." if "references" in reason else ""
            raise InputError(f"none of the {len(ids)} samples can be scored with {names}: {reason}.{hint}")
    computed = {metric.name: metric.compute(collectors[key], len(ids)) for metric, key in zip(metrics, key_of, strict=True)}
    warnings = [warning for source in collectors.values() for warning in source.warnings()]
    warnings += [warning for scores in computed.values() for warning in scores.warnings]
    return Results(ids, groups, computed, errors, failed, warnings=list(dict.fromkeys(warnings)))

"""One pass over the samples that feeds every metric of a run."""

from collections.abc import Hashable, Iterable, Sequence

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, batched, problem
from caplens.metrics.results import Results

_HINTS = {
    "there are no references": " Give them with --references FILE or as 'references' in the file, or score against the images:"
    " -m clipscore --images FOLDER.",
    "there is no image": " Give their folder with --images FOLDER, or their paths as 'image' in the file.",
    "there is no file": " Names of images are relative to the folder of --images.",
}


def run(samples: Iterable[Sample], metrics: Sequence[Metric], *, strict: bool = False) -> Results:
    """Score `samples` with `metrics`.

    A sample that a metric cannot score gets NaN there and its reason in `errors`; with `strict` the first one stops
    the run.
    """
    if not metrics:
        raise InputError("no metric was chosen; name at least one.")
    if len({metric.name for metric in metrics}) < len(metrics):
        raise InputError("two metrics of one run have the same name; score with them one at a time.")
    collectors: dict[Hashable, Collector] = {}
    needs: dict[Hashable, frozenset[str]] = {}
    key_of: list[Hashable] = []
    for metric in metrics:
        collector = metric.collector()
        collectors.setdefault(collector.key, collector)
        needs[collector.key] = metric.requires
        key_of.append(collector.key)

    results = Results([], [], {})
    scored = dict.fromkeys(collectors, 0)
    unknown: dict[str, object] = {}
    for batch in batched(samples):
        unknown = unknown or dict(batch[0].meta)
        start = len(results.ids)
        results.ids.extend(sample.id for sample in batch)
        results.groups.extend(sample.group for sample in batch)
        results.langs.extend(sample.lang for sample in batch)
        results.systems.extend(sample.system for sample in batch)
        for key, collector in collectors.items():
            lacking = {index: lack for index, sample in enumerate(batch) if (lack := problem(sample, needs[key]))}
            if strict and lacking:
                first = min(lacking)
                raise InputError(f"sample {batch[first].id!r}: {lacking[first]}.")
            good = [index for index in range(len(batch)) if index not in lacking]
            collector.add([start + index for index in good], [batch[index] for index in good])
            scored[key] += len(good)
            results.problems |= {start + index: lack for index, lack in lacking.items()}
            if strict:
                _stop_at_problem(results, collector)

    if not results.ids:
        raise InputError("there are no samples to score.")
    for key, collector in collectors.items():
        collector.finish()
        if strict:
            _stop_at_problem(results, collector)
        results.problems |= collector.problems
        if scored[key] == len(collector.problems):
            names = ", ".join(metric.name for metric, its in zip(metrics, key_of, strict=True) if its == key)
            reason = next(iter((collector.problems or results.problems).values()))
            hint = next((hint for word, hint in _HINTS.items() if word in reason), "")
            if hint and unknown:
                hint += f" (What is called {', '.join(map(repr, unknown))} in the file is not looked at.)"
            raise InputError(f"none of the {len(results.ids)} samples can be scored with {names}: {reason}.{hint}")
    results.metrics = {
        metric.name: metric.compute(collectors[key], len(results.ids)) for metric, key in zip(metrics, key_of, strict=True)
    }
    warnings = [warning for source in collectors.values() for warning in source.warnings()]
    warnings += [warning for scores in results.metrics.values() for warning in scores.warnings]
    systems = {system for system in results.systems if system is not None}
    if len(systems) > 1:
        warnings.append(f"the captions of {len(systems)} systems were scored together; 'compare' tells them apart.")
    results.warnings = list(dict.fromkeys(warnings))
    return results


def _stop_at_problem(results: Results, collector: Collector) -> None:
    for row, reason in collector.problems.items():
        raise InputError(f"sample {results.ids[row]!r}: {reason}.")

"""One pass over the samples that feeds every metric of a run."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from caplens.data.content import ContentHash
from caplens.data.extracted import original_name
from caplens.data.languages import base_language
from caplens.data.rows import row_from_sample
from caplens.data.sample import Sample
from caplens.errors import InputError, option
from caplens.metrics.base import Collector, Metric, batched, with_errors
from caplens.results.row_errors import RowError
from caplens.results.scores import ScoreResult, Scores

KeepColumns = bool | Sequence[str]
"""Which columns of the input a result carries: all, or those named."""
_ALWAYS_KEPT = ("id", "lang", "system")
"""Columns that results have anyway."""
_MOST_COLUMNS = 1000
"""Columns of the input that a result can keep: every row has a cell in each."""
_SHOWN = 3
"""Ids that a warning names."""
_SHOWN_REASONS = 5


def run_metrics(
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    *,
    strict: bool = False,
    keep_columns: KeepColumns = False,
    errors_of: Callable[[frozenset[str]], Mapping[int, RowError]] | None = None,
    require_scores: bool = True,
) -> ScoreResult:
    """Score `samples` with `metrics`.

    A sample that a metric cannot score gets NaN and a reason there, and is scored by the others. With `strict` the first such
    sample is an error. With `require_scores` it is an error, too, if no metric can score any sample. `errors_of` gives rows to
    leave out, by what is needed of them: those that another system lacks.
    """
    collectors, keys = _collectors(metrics)
    if errors_of is not None:
        for collector in collectors.values():
            collector.errors.update(errors_of(collector.needs))
    result, first, content = ScoreResult([], [], {}), None, ContentHash()
    for batch in batched(samples):
        content.add(batch)
        first = first or batch[0]
        start = len(result.ids)
        _add_rows(result, batch, keep_columns)
        for collector in collectors.values():
            collector.feed(start, batch)
            if strict:
                _raise_first_error(result, collector)
    if first is None:
        raise InputError("there are no samples to score.")
    for collector in collectors.values():
        collector.finish()
        if strict:
            _raise_first_error(result, collector)
    if require_scores:
        _check_any_scored(collectors.values(), metrics, result, first)
    for metric, metric_keys in zip(metrics, keys, strict=True):
        collected = [collectors[key] for key in metric_keys]
        result.metrics[metric.name] = with_errors(metric.compute(collected, len(result.ids)), collected)
    result.content_hashes = content.hashes()
    result.warnings = _warnings(collectors.values(), result, keep_columns)
    return result


def _warnings(collectors: Iterable[Collector], result: ScoreResult, keep_columns: KeepColumns) -> list[str]:
    warnings = [warning for collector in collectors for warning in collector.warnings()]
    warnings += [warning for scores in result.metrics.values() for warning in scores.warnings]
    if not isinstance(keep_columns, bool):
        absent = [name for name in keep_columns if name not in result.columns and name not in _ALWAYS_KEPT]
        warnings += [f"no caption has a column {name!r} to keep." for name in absent]
    return list(dict.fromkeys(warnings))


def _collectors(metrics: Sequence[Metric]) -> tuple[dict[Hashable, Collector], list[list[Hashable]]]:
    """The collectors of a run by key, and the keys of each metric."""
    if not metrics:
        raise InputError("no metric was chosen; name at least one.")
    twice = next((name for name, count in Counter(metric.name for metric in metrics).items() if count > 1), None)
    if twice is not None:
        raise InputError(
            f"two metrics are called {twice!r}; score with them one at a time, or name a function: caplens.metric(f, name=…)."
        )
    collectors: dict[Hashable, Collector] = {}
    keys = []
    for metric in metrics:
        own = metric.collectors()
        for collector in own:
            collectors.setdefault(collector.key, collector)
        keys.append([collector.key for collector in own])
    return collectors, keys


def _add_rows(result: ScoreResult, batch: Sequence[Sample], keep_columns: KeepColumns) -> None:
    if keep_columns is not False:
        _keep_columns(result, batch, keep_columns)
    result.ids.extend(sample.id for sample in batch)
    result.groups.extend(sample.group for sample in batch)
    result.langs.extend(sample.lang for sample in batch)
    result.systems.extend(sample.system for sample in batch)


def _keep_columns(result: ScoreResult, batch: Sequence[Sample], names: KeepColumns) -> None:
    """Carry columns of the input over; a row that lacks one has None there."""
    start = len(result.ids)
    chosen = None if isinstance(names, bool) else set(names)
    for place, sample in enumerate(batch):
        row = {name: value for name, value in _columns(sample).items() if chosen is None or name in chosen}
        for name in row:
            result.columns.setdefault(name, [None] * (start + place))
        if len(result.columns) > _MOST_COLUMNS:
            raise InputError(f"the input has more than {_MOST_COLUMNS:,} different columns; name those to keep.")
        for name, column in result.columns.items():
            column.append(row.get(name))


def _columns(sample: Sample) -> dict[str, Any]:
    """The input's columns, without those that results have anyway and without images and videos in memory."""
    if not isinstance(sample.image, str | PathLike | None):
        sample = replace(sample, image=None)
    elif isinstance(sample.image, str):
        sample = replace(sample, image=original_name(sample.image))
    if not isinstance(sample.video, str | PathLike | None):
        sample = replace(sample, video=None)
    return {name: value for name, value in row_from_sample(sample).items() if name not in _ALWAYS_KEPT}


def _raise_first_error(result: ScoreResult, collector: Collector) -> None:
    for row, error in collector.errors.items():
        raise InputError(f"sample {result.ids[row]!r}: {error.reason}.")


def _check_any_scored(collectors: Iterable[Collector], metrics: Sequence[Metric], result: ScoreResult, first: Sample) -> None:
    """Raise an error if no collector could take in any sample."""
    failed = [collector for collector in collectors if len(collector.errors) == len(result.ids)]
    if len(failed) < len(list(collectors)):
        return
    error = next(iter(failed[0].errors.values()))
    names = ", ".join(metric.name for metric in metrics)
    raise InputError(f"none of the {len(result.ids)} samples can be scored with {names}: {error.reason}.{_hint(error, first)}")


def _hint(error: RowError, example: Sample) -> str:
    """How to provide what is missing."""
    hints = {
        "there are no references": f" Pass them with {option('references', 'FILE')} or in the column 'references', or score"
        f" against the images: {option('metrics', 'clipscore')} {option('images', 'FOLDER')}.",
        "there is no image": f" Pass their folder with {option('images', 'FOLDER')}, or their paths in the column 'image'.",
        "the folder has no image": " Images are found by the column 'image', or by the id as the name of the file.",
        "there is no file": f" Names of images are relative to the folder of {option('images')}.",
    }
    hint = next((hint for words, hint in hints.items() if words in error.reason), "")
    if hint and example.meta:
        hint += f" (The columns {', '.join(map(repr, example.meta))} are not used.)"
    return hint


def missing_score_warnings(result: ScoreResult, lang: str | None = None) -> list[str]:
    """One line for each reason why captions have no score, with counts by language or system.

    What was given and cannot be used has a reason of its own in each row; these share a line. `lang` is the language of captions
    that name none.
    """
    missing: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    unusable: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for name, scores in result.metrics.items():
        for reason, rows in _rows_by_reason(scores).items():
            missing.setdefault((reason, tuple(rows)), []).append(name)
        if rows_and_reasons := tuple((row, error.reason) for row, error in scores.errors.items() if error.unusable):
            unusable.setdefault(rows_and_reasons, []).append(name)
    return [
        *(
            f"{_count(result, names, len(rows))}: {reason} ({_which(result, rows, lang)})."
            for (reason, rows), names in missing.items()
        ),
        *(f"{_count(result, names, len(rows))} ({_reasons(result, rows)})." for rows, names in unusable.items()),
    ]


def _rows_by_reason(scores: Scores) -> dict[str, list[int]]:
    """Reason -> rows that lack something."""
    by_reason: dict[str, list[int]] = {}
    for row, error in scores.errors.items():
        if not error.unusable:
            by_reason.setdefault(error.reason, []).append(row)
    return by_reason


def _count(result: ScoreResult, names: Sequence[str], rows: int) -> str:
    """The metrics, unless it is all of them, and how many captions they have no score for."""
    prefix = "" if len(names) == len(result.metrics) else f"{', '.join(names)}: "
    return f"{prefix}{rows:,} of {len(result.ids):,} captions have no score"


def _reasons(result: ScoreResult, rows: Sequence[tuple[int, str]]) -> str:
    labels = result.labels()
    shown = [f"{labels[row]}: {reason}" for row, reason in rows[:_SHOWN_REASONS]]
    more = [f"… and {len(rows) - len(shown):,} more"] if len(rows) > len(shown) else []
    return "; ".join(shown + more)


def _which(result: ScoreResult, rows: Sequence[int], lang: str | None) -> str:
    """Which captions: whole languages or systems where they are, else the first ids."""
    langs = [base_language(tag or lang or "en") for tag in result.langs]
    for what, labels in (("languages", langs), ("systems", result.systems)):
        inside = {labels[row] for row in rows}
        if len(set(labels)) > 1 and len(rows) == sum(label in inside for label in labels):
            return f"all of the {what} {', '.join(sorted(str(label) for label in inside))}"
    if len(rows) == len(result.ids):
        return "all captions"
    shown = ", ".join(result.ids[row] for row in rows[:_SHOWN])
    return shown if len(rows) <= _SHOWN else f"{shown}, …"

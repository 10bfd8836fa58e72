"""The scores of captions: `Scores` of one metric, and `ScoreResult` of a run with several."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from caplens.arrays import Floats
from caplens.data.languages import base_language
from caplens.data.rows import free_name
from caplens.results.base import Content, Result, ResultRow, floats, json_values, null_if_nan, number, texts_of_rows
from caplens.results.language_pairs import LanguagePair, lowest_language, pair_table
from caplens.results.levels import PERCENTILES_NOTE, ScoreLevels
from caplens.results.row_errors import RowError, common_reason
from caplens.results.table import LEVEL, REPRODUCE, Cell, Table
from caplens.stats.means import mean_of, mean_pool, mean_statistics
from caplens.stats.significance import Pool

_PERCENTILE = "percentile"


@dataclass(frozen=True)
class Scores:
    """The scores of one metric.

    Attributes
    ----------
    values
        One for each sample, NaN where there is none.
    corpus
        The corpus-level score.
    signature
        The metric and its settings in one line, enough to reproduce the scores.
    statistics, pool
        A row of additive statistics for each sample, and the function from their sums to corpus scores. They allow resampling
        without rescoring, also for metrics whose corpus score is not a mean.
    by_language
        Language -> corpus score.
    corpus_is_pooled
        Whether `corpus` equals `pool` of the summed statistics. METEOR's does not: its statistics are those of the mean.
    errors
        Row -> why it has no score.
    truncated
        Row -> language, of texts longer than the model's maximum input length.
    coverage_warnings
        Row -> why the score is unreliable: a language or image outside the model's training data.
    """

    values: Floats
    corpus: float
    signature: str
    statistics: Floats
    pool: Pool
    by_language: dict[str, float] = field(default_factory=dict)
    corpus_is_pooled: bool = True
    warnings: list[str] = field(default_factory=list)
    truncated: dict[int, str] = field(default_factory=dict)
    coverage_warnings: dict[int, str] = field(default_factory=dict)
    errors: dict[int, RowError] = field(default_factory=dict)

    @property
    def scored(self) -> int:
        """How many samples have a score."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def unusable_rows(self) -> list[int]:
        """Rows that have something which cannot be used."""
        return [row for row, error in self.errors.items() if error.unusable]


@dataclass(repr=False)
class ScoreResult(Result):
    """The scores of captions by one or more metrics.

    `result["cider"]` is the `Scores` of a metric. A row is identified by its id, and by its language and system where an id is
    repeated.

    Attributes
    ----------
    ids, langs, systems, groups
        One entry per row; rows of one group are about the same image.
    metrics
        Name -> `Scores`.
    intervals
        Metric -> confidence interval of its corpus score.
    language_intervals
        Metric -> language -> confidence interval, where there are several languages.
    columns
        Columns of the input that were kept, by name.
    content_hashes
        Hashes of the captions and of the references that were scored.
    levels
        Metric -> where its scores stand between chance and good captions, for metrics that were calibrated.
    calibration
        What the levels were measured on.
    language_pairs
        Metric -> tests of every two languages, where there are several.
    """

    kind = "score"

    ids: list[str]
    groups: list[str]
    metrics: dict[str, Scores]
    langs: list[str | None] = field(default_factory=list)
    systems: list[str | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    language_intervals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    content_hashes: dict[str, str] = field(default_factory=dict)
    levels: dict[str, ScoreLevels] = field(default_factory=dict)
    calibration: str = ""
    language_pairs: dict[str, list[LanguagePair]] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> Scores:
        return self.metrics[metric]

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.metrics)

    def __repr__(self) -> str:
        return str(self)

    @property
    def row_errors(self) -> dict[int, list[tuple[str, RowError]]]:
        """Row -> the metrics that have no score for it, and why."""
        by_row: dict[int, list[tuple[str, RowError]]] = {}
        for name, scores in self.metrics.items():
            for row, error in scores.errors.items():
                by_row.setdefault(row, []).append((name, error))
        return dict(sorted(by_row.items()))

    @property
    def failed_rows(self) -> list[int]:
        """Rows without any score, and rows with something that cannot be used."""
        return [
            row
            for row, errors in self.row_errors.items()
            if len(errors) == len(self.metrics) or any(error.unusable for _, error in errors)
        ]

    @property
    def failed(self) -> int:
        return len(self.failed_rows)

    @property
    def truncated(self) -> dict[str, int]:
        """Language -> number of captions that were truncated, or whose references were."""
        rows = {row: lang for scores in self.metrics.values() for row, lang in scores.truncated.items()}
        return dict(sorted(Counter(rows.values()).items()))

    @property
    def coverage_warnings(self) -> dict[int, str]:
        """Row -> why its scores are not to be trusted: the model was not trained on its language or on such images."""
        return {row: why for scores in self.metrics.values() for row, why in scores.coverage_warnings.items()}

    @property
    def errors(self) -> dict[str, str]:
        """Why captions lack the score of some or all metrics, by id; see `labels` where ids repeat."""
        return self._by_label({row: common_reason(errors) for row, errors in self.row_errors.items()})

    def labelled_errors(self, rows: Sequence[int]) -> dict[str, str]:
        """The errors of some rows, by id."""
        errors = self.row_errors
        return self._by_label({row: common_reason(errors[row]) for row in rows})

    def _by_label(self, by_row: Mapping[int, str]) -> dict[str, str]:
        labels = self.labels()
        return {labels[row]: text for row, text in sorted(by_row.items())}

    def labels(self) -> list[str]:
        """Ids; where they repeat, with language and system, and with the row where these repeat too."""
        if len(set(self.ids)) == len(self.ids):
            return self.ids
        parts = zip(self.ids, self.langs, self.systems, strict=True)
        labels = [" ".join(part for part in row if part) for row in parts]
        # An id may look like another with its language, or like one with its row.
        while len(set(labels)) < len(labels):
            counts = Counter(labels)
            labels = [label if counts[label] == 1 else f"{label} (row {row})" for row, label in enumerate(labels, 1)]
        return labels

    def tables(self) -> list[Table]:
        by_language = self.language_table()
        return [self.corpus_table(), *([] if by_language is None else [by_language]), *self.pair_tables()]

    def pair_tables(self) -> list[Table]:
        """Tests of the languages, one table per metric."""
        return [
            pair_table(name, pairs, self.means_by_language(name), percentiles=name in self.levels)
            for name, pairs in self.language_pairs.items()
        ]

    def means_by_language(self, metric: str) -> Mapping[str, float]:
        """What languages are compared by: percentiles where there are levels, else scores."""
        return self.percentiles_by_language(metric) if metric in self.levels else self.metrics[metric].by_language

    def corpus_table(self) -> Table:
        """Corpus scores, one row per metric."""
        rows: list[list[Cell]] = []
        for name, scores in self.metrics.items():
            low, high = self.intervals.get(name, (None, None))
            rows.append(
                [name, *(None if cell is None else null_if_nan(cell) for cell in (scores.corpus, low, high)), scores.scored]
            )
        scored = np.count_nonzero(np.any([~np.isnan(scores.values) for scores in self.metrics.values()], axis=0))
        notes = [
            f"{scored:,} of {len(self.ids):,} captions scored"
            + ("; intervals by bootstrap over images." if self.intervals else "."),
            *self.level_notes(),
            REPRODUCE,
            *(scores.signature for scores in self.metrics.values()),
        ]
        columns = ["metric", "score", f"{LEVEL} low", f"{LEVEL} high", "scored"]
        # Where every metric scored the same captions, the note says how many.
        kept = len(columns) if len({row[-1] for row in rows}) > 1 else len(columns) - 1
        return Table(columns[:kept], [row[:kept] for row in rows], notes=notes)

    def language_table(self) -> Table | None:
        """Corpus scores, one row per language, where there are several."""
        languages = sorted({lang for scores in self.metrics.values() for lang in scores.by_language})
        if len(languages) < 2:
            return None
        percentiles = {name: self.percentiles_by_language(name) for name in self.levels}
        rows: list[list[Cell]] = [
            [
                lang,
                *(scores.by_language.get(lang) for scores in self.metrics.values()),
                *(of_metric.get(lang) for of_metric in percentiles.values()),
            ]
            for lang in languages
        ]
        notes = [PERCENTILES_NOTE] if percentiles else []
        notes += self.lowest_languages()
        return Table(["language", *self.metrics, *(f"{name} {_PERCENTILE}" for name in percentiles)], rows, notes=notes)

    def lowest_languages(self) -> list[str]:
        """Which language is the worst, in a sentence for each metric by which languages can be compared."""
        sentences = {
            name: lowest_language(pairs, self.percentiles_by_language(name))
            for name, pairs in self.language_pairs.items()
            if name in self.levels
        }
        return [f"{name}: {sentence}" for name, sentence in sentences.items() if sentence]

    def level_notes(self) -> list[str]:
        """What the scores of the middle caption mean, one sentence for each metric that was calibrated."""
        notes = [levels.summary(name, self.calibration) for name, levels in self.levels.items()]
        return [note for note in notes if note]

    def percentiles_by_language(self, metric: str) -> dict[str, float]:
        """Language -> the mean percentile of its captions among good captions."""
        good = self.levels[metric].good
        langs = np.array([base_language(tag or "en") for tag in self.langs])
        means = {lang: mean_of(good[langs == lang]) for lang in self.metrics[metric].by_language}
        return {lang: value for lang, value in means.items() if not np.isnan(value)}

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per caption, with its scores and its error."""
        values = {name: scores.values.tolist() for name, scores in self.metrics.items()}
        named, coverage = self._optional_columns(), self.coverage_warnings
        errors = {row: common_reason(row_errors) for row, row_errors in self.row_errors.items()}
        # A column of the input with the name of one of ours, an earlier score say, keeps another name.
        levels = {
            f"{name}_{column}": of_column.tolist()
            for name, of_metric in self.levels.items()
            for column, of_column in of_metric.columns().items()
        }
        taken = {*values, *levels, *named, "doubt", "error"}
        kept = {free_name(name, self.columns) if name in taken else name: column for name, column in self.columns.items()}
        for row, identifier in enumerate(self.ids):
            about = {name: column[row] for name, column in {**kept, **named}.items()}
            scores = {name: null_if_nan(column[row]) for name, column in {**values, **levels}.items()}
            doubt = {"doubt": coverage.get(row)} if coverage else {}
            yield {"id": identifier, **about, **scores, **doubt, "error": errors.get(row)}

    def _optional_columns(self) -> dict[str, list[str | None]]:
        """`lang` and `system`, if any caption has one."""
        named = {"lang": self.langs, "system": self.systems}
        return {name: column for name, column in named.items() if any(value is not None for value in column)}

    def content(self) -> dict[str, Any]:
        truncated, coverage = self.truncated, self.coverage_warnings
        return {
            "ids": self.ids,
            **self._optional_columns(),
            **({} if self.groups == self.ids else {"groups": self._group_numbers()}),
            **({"columns": self.columns} if self.columns else {}),
            "metrics": {name: self._metric_content(name, scores) for name, scores in self.metrics.items()},
            "counts": {
                "samples": len(self.ids),
                "failed": self.failed,
                "truncated": sum(truncated.values()),
                "doubtful": len(coverage),
            },
            **({"truncated": truncated} if truncated else {}),
            **({"doubts": self._by_label(coverage)} if coverage else {}),
            "errors": self.errors,
            "warnings": self.warnings,
            **({"content_hashes": self.content_hashes} if self.content_hashes else {}),
            **({"calibration": self.calibration} if self.calibration else {}),
        }

    def _group_numbers(self) -> list[int]:
        """The image of each caption as a number: captions of one image have the same."""
        numbers: dict[str, int] = {}
        return [numbers.setdefault(group, len(numbers)) for group in self.groups]

    def _metric_content(self, name: str, scores: Scores) -> dict[str, Any]:
        content: dict[str, Any] = {
            "corpus": null_if_nan(scores.corpus),
            "values": json_values(scores.values),
            "signature": scores.signature,
            "errors": self._by_label({row: error.reason for row, error in scores.errors.items()}),
            "counts": {"scored": scores.scored, "failed": len(scores.errors), "unusable": len(scores.unusable_rows)},
        }
        by_row = {
            "truncated": {str(row): lang for row, lang in scores.truncated.items()},
            "doubts": {str(row): text for row, text in scores.coverage_warnings.items()},
            "unusable": scores.unusable_rows,
        }
        content |= {key: rows for key, rows in by_row.items() if rows}
        if name in self.intervals:
            content["low"], content["high"] = (null_if_nan(bound) for bound in self.intervals[name])
        return content | {key: rows for key, rows in self._language_content(name, scores).items() if rows}

    def _language_content(self, name: str, scores: Scores) -> dict[str, Any]:
        languages = scores.by_language if len(scores.by_language) > 1 else {}
        levels = self.levels[name].columns() if name in self.levels else {}
        return {
            "languages": {lang: null_if_nan(value) for lang, value in sorted(languages.items())},
            "language_pairs": [pair.to_dict() for pair in self.language_pairs.get(name, ())],
            "levels": {column: json_values(values) for column, values in levels.items()},
            "language_intervals": {
                lang: [null_if_nan(bound) for bound in bounds]
                for lang, bounds in sorted(self.language_intervals.get(name, {}).items())
            },
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        ids = list(content["ids"])
        groups = [str(int(group)) for group in content["groups"]] if "groups" in content else list(ids)
        if len(groups) != len(ids):
            raise ValueError(f"there are {len(ids)} ids and {len(groups)} groups")
        result = cls(ids, groups, {}, warnings=list(content["warnings"]))
        result.langs, result.systems = (texts_of_rows(content, name, len(ids)) for name in ("lang", "system"))
        result.columns = {name: list(values) for name, values in content.get("columns", {}).items()}
        result.content_hashes = {str(name): str(value) for name, value in content.get("content_hashes", {}).items()}
        result.calibration = str(content.get("calibration", ""))
        for name, metric in content["metrics"].items():
            values = floats(metric["values"])
            if len(values) != len(ids):
                raise ValueError(f"{name} has {len(values)} values for {len(ids)} captions")
            errors = result._errors_from(values, metric, content["errors"])
            # The file does not hold the statistics that resampling needs; it holds the intervals.
            result.metrics[name] = Scores(
                values,
                number(metric["corpus"]),
                metric["signature"],
                mean_statistics(values),
                mean_pool,
                {lang: number(value) for lang, value in metric.get("languages", {}).items()},
                corpus_is_pooled=False,
                truncated=_rows_from(metric.get("truncated", {})),
                coverage_warnings=_rows_from(metric.get("doubts", {})),
                errors=errors,
            )
            result._add_details(name, metric)
        return result

    def _add_details(self, name: str, metric: Content) -> None:
        """What a file says of a metric beside its scores."""
        if "low" in metric:
            self.intervals[name] = (number(metric["low"]), number(metric["high"]))
        if "language_pairs" in metric:
            self.language_pairs[name] = [LanguagePair.from_dict(pair) for pair in metric["language_pairs"]]
        if "levels" in metric:
            self.levels[name] = ScoreLevels.from_columns(metric["levels"], len(self.ids))
        self.language_intervals[name] = {
            lang: (number(low), number(high)) for lang, (low, high) in metric.get("language_intervals", {}).items()
        }

    def _errors_from(self, values: Floats, metric: Content, overall: Mapping[str, str]) -> dict[int, RowError]:
        """The errors of one metric; caplens 0.1 wrote one reason per caption, for all metrics."""
        rows = np.flatnonzero(np.isnan(values)).tolist()
        reasons = metric.get("errors", overall)
        labels = self._by_label(dict.fromkeys(rows, ""))
        unusable = set(metric.get("unusable", () if "errors" in metric else rows))
        return {row: RowError(reasons.get(label, ""), row in unusable) for row, label in zip(rows, labels, strict=True)}


def _rows_from(by_row: Mapping[str, str]) -> dict[int, str]:
    """JSON has no numbers for keys."""
    return {int(row): text for row, text in by_row.items()}

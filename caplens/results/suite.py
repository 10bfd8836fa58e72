"""Several benchmarks, languages or protocols in one run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from caplens.results.agreement import AgreementResult, language_table, protocol_table
from caplens.results.base import Content, Result, ResultRow
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.table import Table

_ABSENT = "its files are not at hand"


@dataclass
class SuiteResult(Result):
    """The results of several benchmarks.

    Attributes
    ----------
    results
        One for each benchmark, language and protocol.
    not_run
        What could not be run -> why.
    absent
        Benchmarks whose files are missing.
    correlations
        Where a benchmark was run on the same items in several languages.
    """

    kind = "suite"

    results: list[AgreementResult]
    not_run: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    correlations: list[LanguageCorrelation] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Benchmarks that could not be run, and captions that could not be scored."""
        return len(self.not_run) + sum(result.failed for result in self.results)

    @property
    def warnings(self) -> list[str]:  # type: ignore[override]
        """Each once, with all the languages that it is about."""
        langs_of: dict[tuple[str, str], list[str]] = {}
        for result in self.results:
            for warning in result.warnings:
                langs_of.setdefault((result.benchmark, warning), []).append(result.lang)
        warnings = [
            f"{benchmark} ({', '.join(dict.fromkeys(langs))}): {warning}" for (benchmark, warning), langs in langs_of.items()
        ]
        warnings += [f"{name} was not run: {why}" for name, why in self.not_run.items()]
        return [*warnings, *([f"the files of {', '.join(self.absent)} are not at hand."] if self.absent else [])]

    def tables(self) -> list[Table]:
        if len(self.results) == 1:
            return self.results[0].tables()
        if len({(result.benchmark, result.lang) for result in self.results}) < len(self.results):
            return [protocol_table(results) for results in self.grouped("benchmark", "lang")]
        tables = [
            language_table(results) if len(results) > 1 else results[0].measures_table()
            for results in self.grouped("benchmark", "protocol")
        ]
        return [*tables, *(table for correlation in self.correlations for table in correlation.tables())]

    def grouped(self, *by: str) -> list[list[AgreementResult]]:
        """The results that have the same values of these attributes."""
        groups: dict[tuple[str, ...], list[AgreementResult]] = {}
        for result in self.results:
            groups.setdefault(tuple(getattr(result, name) for name in by), []).append(result)
        return list(groups.values())

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each benchmark, protocol, language, measure and metric."""
        return (row for result in self.results for row in result.to_rows())

    def to_dict(self) -> dict[str, Any]:
        """One benchmark by itself is written as such."""
        if len(self.results) == 1 and not self.not_run and not self.absent:
            return self.results[0].to_dict()
        return super().to_dict()

    def content(self) -> dict[str, Any]:
        return {
            "benchmarks": [result.to_dict() for result in self.results],
            "across_languages": [correlation.to_dict() for correlation in self.correlations],
            "not_run": self.not_run_or_absent(),
        }

    def not_run_or_absent(self) -> dict[str, str]:
        """What was not run -> why."""
        return self.not_run | dict.fromkeys(self.absent, _ABSENT)

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        not_run = dict(content["not_run"])
        absent = [name for name, why in not_run.items() if why == _ABSENT]
        return cls(
            [AgreementResult.from_dict(result) for result in content["benchmarks"]],
            {name: why for name, why in not_run.items() if why != _ABSENT},
            absent,
            [LanguageCorrelation.from_dict(correlation) for correlation in content["across_languages"]],
        )

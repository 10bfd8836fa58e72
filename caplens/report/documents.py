"""The results in a report, and the paths of the captions and images that were scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from caplens.results.agreement import AgreementResult
from caplens.results.base import Result
from caplens.results.loading import read_result
from caplens.results.suite import SuiteResult
from caplens.results.training_log import TrainingLog


@dataclass(frozen=True)
class InputPaths:
    """Paths that replace those named in a result; several captions files where systems were compared."""

    captions: Sequence[Path] = ()
    references: Path | None = None
    images: Path | None = None
    data: Path | None = None


@dataclass(frozen=True)
class Document:
    """One result, with the input files that it names."""

    name: str
    result: Result
    inputs: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    """The folder that the paths in `inputs` are relative to."""
    path: Path | None = None
    """The file that the result was read from, if any."""

    @classmethod
    def of(
        cls,
        name: str,
        result: Result,
        inputs: Mapping[str, Any] | None = None,
        folder: Path = Path(),
        path: Path | None = None,
    ) -> "list[Document]":
        """The documents of a result: one, or for a suite one per result in it."""
        results: Sequence[Result] = [result]
        if isinstance(result, SuiteResult):
            results = [*_with_not_run(result), *result.correlations]
        return [cls(name, part, inputs or {}, folder, path) for part in results]

    @property
    def lang(self) -> str:
        """The language of captions that name none."""
        return str(self.inputs.get("lang") or "en")


def _with_not_run(suite: SuiteResult) -> list[AgreementResult]:
    """The results of a suite; the first one also warns about the benchmarks that were not run."""
    if not suite.results:
        return []
    first, *others = suite.results
    not_run = [f"{name} was not run: {why}" for name, why in suite.not_run_or_absent().items()]
    # A copy: the caller's result must not gain a warning with every report.
    return [replace(first, warnings=[*first.warnings, *not_run]), *others]


def read_documents(path: Path, name: str = "") -> list[Document]:
    """The documents in a result file: one, or several for a suite. `name` defaults to that of the file, or of a log's folder."""
    result, inputs = read_result(path)
    if isinstance(result, TrainingLog):
        return [Document(name or path.parent.name or path.name, result, path=path)]
    return Document.of(name or path.stem, result, inputs, path.parent, path)

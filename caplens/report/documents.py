"""The results that a report is about, and where the captions and images that they were made from are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caplens.results.base import Result
from caplens.results.loading import read_result
from caplens.results.suite import SuiteResult
from caplens.results.training_log import TrainingLog


@dataclass(frozen=True)
class InputPaths:
    """Where captions and images are, if not where a result says; several files of captions where systems were compared."""

    captions: Sequence[Path] = ()
    references: Path | None = None
    images: Path | None = None
    data: Path | None = None


@dataclass(frozen=True)
class Document:
    """One result, and the files that it was made from, where its file names them."""

    name: str
    result: Result
    inputs: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    """What the names of inputs are relative to."""
    path: Path | None = None
    """The file that it was read from, if it was."""

    @classmethod
    def of(
        cls,
        name: str,
        result: Result,
        inputs: Mapping[str, Any] | None = None,
        folder: Path = Path(),
        path: Path | None = None,
    ) -> "list[Document]":
        """The documents of a result: one, except for a suite, each of whose results is one."""
        results: list[Result] = [result]
        if isinstance(result, SuiteResult):
            results = [*result.results, *result.correlations]
            # What was not run is said with the first result.
            result.results[0].warnings.extend(f"{other} was not run: {why}" for other, why in result.not_run_or_absent().items())
        return [cls(name, one, inputs or {}, folder, path) for one in results]

    @property
    def lang(self) -> str:
        """The language of captions that name none."""
        return str(self.inputs.get("lang") or "en")


def read_documents(path: Path, name: str = "") -> list[Document]:
    """The results in a file: one, except for a run of several benchmarks or languages; called `name`, or after the file."""
    result, inputs = read_result(path)
    if isinstance(result, TrainingLog):
        return [Document(name or path.parent.name or path.name, result, path=path)]
    return Document.of(name or path.stem, result, inputs, path.parent, path)

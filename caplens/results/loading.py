"""Results read back from the files that commands and `Result.save` wrote, by their `kind` and `schema`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from caplens.data.files import Source
from caplens.data.formats.json_document import read_document
from caplens.errors import InputError
from caplens.results.agreement import AgreementResult
from caplens.results.base import SCHEMA, Result
from caplens.results.calibration import Calibration
from caplens.results.check import CheckResult
from caplens.results.comparison import Comparison, LanguageComparison
from caplens.results.drift import DriftResult
from caplens.results.job_plan import JobPlan
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.leaderboard import Leaderboard
from caplens.results.leakage import LeakageResult
from caplens.results.robustness import RobustnessResult
from caplens.results.score_summary import ScoreSummary
from caplens.results.scores import ScoreResult
from caplens.results.selection import SelectionResult
from caplens.results.study import StudyResult
from caplens.results.suite import SuiteResult
from caplens.results.training_log import TrainingLog, read_training_log

KINDS: dict[str, type[Result]] = {
    result.kind: result
    for result in (
        ScoreResult, Comparison, LanguageComparison, AgreementResult, LanguageCorrelation, RobustnessResult, SuiteResult,
        LeakageResult, TrainingLog, Leaderboard, Calibration, CheckResult, DriftResult, StudyResult,
        SelectionResult, ScoreSummary, JobPlan,
    )
}  # fmt: skip
_BY_KEY: dict[str, type[Result]] = {
    "metrics": ScoreResult,
    "systems": Comparison,
    "robustness": RobustnessResult,
    "languages": LanguageComparison,
    "benchmarks": SuiteResult,
    "correlations": LanguageCorrelation,
    "same_content": LeakageResult,
    "results": AgreementResult,
}
"""The key by which a result of caplens 0.1, which names no kind, is recognised."""
_ADVICE = "Results are what 'caplens score … -o scores.json' and the like write, and log.jsonl of training runs."
_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, StopIteration, OSError, RecursionError)
"""What a file raises that holds something else than it should."""


def load_results(path: str | PathLike[str]) -> Result:
    """The result that a command or `Result.save` wrote.

    Parameters
    ----------
    path
        A JSON file of `caplens score`, `compare`, `bench`, `agreement`, `crossmodal`, `robustness` or `leakage`, of this
        version or of 0.1, or the `log.jsonl` of a training run.

    Returns
    -------
    Result
        Of the class that wrote it, such as `ScoreResult`.

    Raises
    ------
    InputError
        If the file is not a result, or was written by a newer version.

    Examples
    --------
    >>> results = caplens.load_results("scores.json")  # doctest: +SKIP
    >>> results["cider"].corpus  # doctest: +SKIP
    """
    return read_result(Path(path))[0]


def read_result(path: Path) -> tuple[Result, dict[str, Any]]:
    """The result in a file, and the files that it was made from, where it names them."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Name a file that a command wrote with -o FILE.json, or a run's log.jsonl.")
    if path.suffix.lower() == ".jsonl":
        return read_training_log(path), {}
    with Source(path) as source:
        if not source.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
            raise InputError(f"{path}: this is not the JSON of a result. {_ADVICE}")
    with Source(path) as source:
        content = read_document(source)
    with as_input_error(path):
        result = result_from_dict(content)
        # What cannot be shown has a value of a wrong type somewhere.
        str(result)
        return result, dict(content.get("inputs", {}))


def result_from_dict(content: Mapping[str, Any]) -> Result:
    """The result whose `to_dict` is `content`."""
    if content.get("schema", SCHEMA) > SCHEMA:
        raise InputError(
            f"the result was written by caplens {content.get('caplens')}, which is newer than this one. Update caplens."
        )
    by_key = next((kind for key, kind in _BY_KEY.items() if key in content), None)
    kind = KINDS.get(str(content["kind"])) if "kind" in content else by_key
    if kind is None:
        raise InputError(f"this is not a result: it names no kind of result that there is. {_ADVICE}")
    return kind.from_dict(content)


@contextmanager
def as_input_error(path: Path | None) -> Iterator[None]:
    """Files come from elsewhere.

    Whatever is wrong with one becomes an `InputError`. Without a path, errors are raised as they are.
    """
    try:
        yield
    except InputError as error:
        if path is None or str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from None
    except _WRONG as error:
        if path is None:
            raise
        raise InputError(
            f"{path}: this is not a result, is one of another version of caplens, or is damaged"
            f" ({type(error).__name__}: {error}). {_ADVICE}"
        ) from None

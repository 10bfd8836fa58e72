"""Every kind of result, its tables, and how it is written and read."""

from caplens.results.agreement import AgreementResult
from caplens.results.base import Result
from caplens.results.comparison import Comparison, LanguageComparison
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.leakage import LeakageResult
from caplens.results.loading import load_results
from caplens.results.robustness import PerturbationEffect, RobustnessResult
from caplens.results.row_errors import RowError
from caplens.results.scores import ScoreResult, Scores
from caplens.results.suite import SuiteResult
from caplens.results.table import Table
from caplens.results.training_log import TrainingLog

__all__ = [
    "AgreementResult",
    "Comparison",
    "LanguageComparison",
    "LanguageCorrelation",
    "LeakageResult",
    "PerturbationEffect",
    "Result",
    "RobustnessResult",
    "RowError",
    "ScoreResult",
    "Scores",
    "SuiteResult",
    "Table",
    "TrainingLog",
    "load_results",
]

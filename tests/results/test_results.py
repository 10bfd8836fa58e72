"""Every kind of result prints a table, becomes rows, and is the same after being written and read."""

import csv
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.benchmarks.leakage import LeakageResult
from caplens.human.analysis import (
    CaptionRating,
    Preference,
    delta_correlations,
    quality_by_language,
    side_by_sides,
    strengths_by_language,
)
from caplens.results import Result, load_results
from caplens.results.job_plan import JobPlan, JobSize, MachineCost
from caplens.results.language_correlation import LanguageCorrelation
from caplens.results.leaderboard import Leaderboard, LeaderboardColumn, LeaderboardEntry
from caplens.results.loading import KINDS
from caplens.results.score_summary import MetricSummary, ScoreSummary, SummaryScore
from caplens.results.selection import SelectedImage, SelectionResult
from caplens.results.study import DeltaPair, StudyResult
from caplens.results.suite import SuiteResult
from caplens.results.training_log import TrainingLog

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
RATED = [
    {
        "id": f"{image}-{system}",
        "image": f"{image}.jpg",
        "caption": "a dog runs over the grass"[: 6 + 3 * system + image],
        "references": ["a dog runs over green grass"],
        "ratings": [{"value": 1 + system, "rater": "x"}, {"value": 1 + (system + image) % 4, "rater": "y"}],
        "system": f"s{system}",
    }
    for image in range(5)
    for system in range(4)
]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    good, bad = EXAMPLES / "good.jsonl", EXAMPLES / "bad.jsonl"
    agreement = package.agreement(RATED, ["bleu1", "length"], resamples=20)
    return {
        "score": package.score(good, ["bleu1", "rouge-l"], resamples=10),
        "comparison": package.compare({"good": good, "bad": bad}, ["bleu1"], resamples=10),
        "comparison-by-language": _by_language(good, bad),
        "agreement": agreement,
        "robustness": package.robustness(good, ["bleu1"], resamples=10),
        "language-correlation": LanguageCorrelation(
            "b", ["en", "de"], 3, {"cider": {"all": np.array([[1, np.nan], [np.nan, 1]])}}, "p", {"de": 2}
        ),
        "suite": SuiteResult([agreement, agreement], {"other": "it is broken"}, ["absent"]),
        "score-summary": _summary(),
        "job-plan": _plan(),
        "leaderboard": Leaderboard(
            [
                LeaderboardEntry("b", "p", "en", "tau-c", "cider", 43.9, False, signature="cider|x", low=41.0, high=46.0, p=0.01),
                LeaderboardEntry("b", "p", "en", "tau-c", "cider", 43.8, True, "A paper, table 1"),
                LeaderboardEntry("b", "p", "en", "tau-c", "polos", 56.4, True, "Another paper"),
            ],
            {LeaderboardColumn("b", "p", "en", "tau-c"): 61.3},
            {"other": "It is on the hub."},
            "length",
        ),
        "calibration": _calibration(),
        "check": package.check({"1": "IMG_2041.jpg", "2": "A dog runs through the snow.", "3": "a dog a dog a dog"}, lang="en"),
        "drift": package.drift(
            package.score(RATED, ["length"], resamples=0), package.score(RATED[::-1], ["length"], resamples=0), resamples=10
        ),
        "study": _study(),
        "selection": SelectionResult(
            [SelectedImage("1", "a.jpg", "de", "area", 52.5, 13.4), SelectedImage("2", "b.jpg", "fr", "world", -33.0, 18.0)],
            ["3"],
        ),
        "leakage": LeakageResult("b", 3, 4, ["a.jpg"], ["b.jpg"], 2),
        "training-log": TrainingLog({"text": [{"step": 1.0, "loss": 2.0}, {"step": 2.0, "loss": 1.5, "validation": 3.0}]}),
    }


def _calibration():
    """Levels of the length of captions, with intervals of ratings."""
    texts = [("a dog " + "runs " * (number % 7)).strip() for number in range(60)]
    rated = [{"id": str(number), "caption": text, "ratings": [number % 7]} for number, text in enumerate(texts)]
    return package.calibrate({str(number): text for number, text in enumerate(texts)}, ["length"], rated=rated, draws=1)


def _study():
    """Quality, side by side, strengths and correlations."""
    ratings = [CaptionRating(str(n), str(n), "de", "", str(r), 1.0 + (n + r) % 4) for n in range(9) for r in range(2)]
    sides = [
        Preference(str(n), "en", one, other, "r", n % 3 - 1.0)
        for n in range(9)
        for one, other in (("x", "y"), ("x", "z"), ("y", "z"))
    ]
    pairs = [DeltaPair("en", str(n), "b", float(n), {"cider": n * n / 10}) for n in range(4)]
    scale = {"GOOD": 3, "MEDIUM": 2, "BAD": 1}
    return StudyResult(
        "t", "rate", quality_by_language(ratings, scale, 10), side_by_sides(sides, 10), strengths_by_language(sides, 10),
        pairs, delta_correlations(pairs), ["a warning"],
    )  # fmt: skip


def _summary():
    """Of partitions; without an interval."""
    scores = {lang: SummaryScore(0.1 + 0.2, float("nan"), float("nan"), 3) for lang in ("de", "en")}
    total = SummaryScore(0.3, 0.1, 0.5, 6)
    return ScoreSummary("out", 7, 1, 2, {"cider": MetricSummary(total, scores, "cider-d|v:1")}, ["a warning"])


def _plan():
    nan = float("nan")
    machines = [
        MachineCost("this machine", 1, 18.5, 84.25, 1 / 3, 0.1, "measured"),
        MachineCost("other", 1, nan, nan, nan, nan, "unknown"),
    ]
    return JobPlan("caplens-mini", JobSize(1000, 100, 900), 500, 3, 7400.5, machines, ["a warning"])


def _by_language(good, bad):
    from caplens.results.comparison import LanguageComparison

    systems = {name: [s for s in package.SampleFile(path) if s.lang == "en"] for name, path in (("a", good), ("b", bad))}
    return LanguageComparison({"en": package.compare(systems, ["bleu1"], resamples=10)}, "crossmodal-3600")


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_the_same_after_being_written_and_read(results, kind, tmp_path):
    result = results[kind]
    document = result.to_dict()
    assert (document["kind"], document["schema"], document["caplens"]) == (kind, 2, package.__version__)
    json.dumps(document, allow_nan=False)
    result.save(tmp_path / "result.json")
    loaded = load_results(tmp_path / "result.json")
    assert type(loaded) is type(result)
    assert loaded.to_dict() == document
    assert str(loaded) == str(result)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_prints_its_tables_and_has_rows(results, kind, tmp_path):
    result = results[kind]
    for table in result.tables():
        assert str(table.columns[0]) in str(result)
    rows = list(result.to_rows())
    assert rows
    result.save(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == list(rows[0])
    result.save(tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == len(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_becomes_data_frames_and_parquet(results, kind, tmp_path):
    pandas, polars = need("pandas"), need("polars")
    result = results[kind]
    rows = list(result.to_rows())
    assert isinstance(result.to_pandas(), pandas.DataFrame)
    assert len(result.to_pandas()) == len(rows)
    assert result.to_polars().columns == list(rows[0])
    need("pyarrow")
    result.save(tmp_path / "rows.parquet")
    assert polars.read_parquet(tmp_path / "rows.parquet").columns == list(rows[0])


def test_a_suffix_that_names_no_format_is_an_error(results, tmp_path):
    with pytest.raises(package.InputError, match="names no format of results"):
        results["score"].save(tmp_path / "scores.xyz")


def test_a_result_of_a_newer_version_is_refused(results, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**results["score"].to_dict(), "schema": 99, "caplens": "9.0"}), encoding="utf-8")
    with pytest.raises(package.InputError, match=r"written by caplens 9\.0, which is newer"):
        load_results(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "not the JSON of a result"), ('{"a": 1}', "is not a result"), ('{"kind": "nonsense"}', "is not a result")],
)
def test_what_is_not_a_result_is_one_sentence(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(package.InputError, match=message):
        load_results(tmp_path / "x.json")
    with pytest.raises(package.InputError, match="this is a folder"):
        load_results(tmp_path)

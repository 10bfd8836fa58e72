"""Agreement with one's own raters, checked against scipy, the krippendorff package and numbers worked by hand."""

import json

import krippendorff
import numpy as np
import pytest
import scipy.stats
from fake_backbone import FakeBackbone
from PIL import Image

import caplens as package
from caplens.benchmarks.own_ratings import rater_agreement
from caplens.data import Rating, Sample
from caplens.stats import tie_calibrated_accuracy

WORDS = "a dog cat man runs sits red blue grass over under the".split()


def _rows(seed: int = 0, raters: int = 3) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    rows = []
    for image in range(12):
        for system in range(4):
            length = int(rng.integers(1, 9))
            ratings = [
                {"value": int(np.clip(length // 2 + rng.integers(-1, 3), 1, 5)), "rater": f"r{rater}"} for rater in range(raters)
            ]
            caption = " ".join(rng.choice(WORDS, length))
            rows.append(
                {"id": f"{image}-{system}", "image": f"{image}.jpg", "caption": caption, "references": ["a dog runs over grass"],
                 "ratings": ratings, "system": f"s{system}", "lang": "en"}
            )  # fmt: skip
    return rows


def _values(rows):
    return np.array([[rating["value"] for rating in row["ratings"]] for row in rows], dtype=float)


def test_correlations_are_scipys_and_have_intervals_by_image():
    rows = _rows()
    result = package.agreement(rows, ["length", "bleu1"], resamples=200)
    lengths, human = np.array([len(row["caption"].split()) for row in rows], dtype=float), _values(rows).mean(axis=1)
    estimates = result.results["length"]
    assert list(estimates) == ["tau-c", "tau-b", "spearman", "pearson"]
    assert estimates["tau-c"].value == pytest.approx(100 * scipy.stats.kendalltau(lengths, human, variant="c").statistic)
    assert estimates["spearman"].value == pytest.approx(100 * scipy.stats.spearmanr(lengths, human).statistic)
    assert estimates["pearson"].low < estimates["pearson"].value < estimates["pearson"].high
    assert (result.rows, result.images, result.failed) == (48, 12, 0)
    assert {(contrast.first, contrast.second) for contrast in result.contrasts} == {("length", "bleu1")}


def test_each_rating_is_a_data_point_in_the_expanded_protocol():
    rows = _rows()
    result = package.agreement(rows, ["length"], protocol="expanded", coefficients=["pearson"], resamples=5)
    lengths = np.repeat([len(row["caption"].split()) for row in rows], 3).astype(float)
    expected = scipy.stats.pearsonr(lengths, _values(rows).ravel()).statistic
    assert result.results["length"]["pearson"].value == pytest.approx(100 * expected)
    assert (result.rows, result.measures) == (144, ["pearson"])


def test_alpha_and_the_human_ceiling():
    rows = _rows()
    result = package.agreement(rows, ["length"], resamples=5)
    table = _values(rows).T
    assert result.raters.raters == 3
    assert result.raters.alpha == pytest.approx(krippendorff.alpha(table, level_of_measurement="interval"))
    against = [scipy.stats.pearsonr(table[rater], np.delete(table, rater, axis=0).mean(axis=0)).statistic for rater in range(3)]
    assert result.raters.ceiling["pearson"] == pytest.approx(100 * np.mean(against))


def test_raters_who_saw_different_captions_are_told_apart_by_name():
    ratings = [
        [Rating(1, "x"), Rating(2, "y")],
        [Rating(2, "y"), Rating(3, "z")],
        [Rating(3, "x"), Rating(3, "z")],
        [Rating(5, "z"), Rating(4, "x")],
    ]
    found = rater_agreement(ratings, ["pearson"])
    table = np.array([[1, np.nan, 3, 4], [2, 2, np.nan, np.nan], [np.nan, 3, 3, 5]])
    assert found.raters == 3
    assert found.alpha == pytest.approx(krippendorff.alpha(table, level_of_measurement="interval"))
    # x gave 1-3-4 where the others' means are 2-3-5: r = 13/14; z gave 3-3-5 against 2-3-4: r = 0.8660; y is constant.
    assert found.ceiling["pearson"] == pytest.approx(100 * (13 / 14 + 0.8660254) / 2, abs=1e-4)
    assert rater_agreement([[Rating(1)], [Rating(2)]], ["pearson"]) is None


def test_pairs_of_one_image_and_systems():
    rows = _rows()
    result = package.agreement(rows, ["length"], resamples=5)
    lengths, human = np.array([len(row["caption"].split()) for row in rows], dtype=float), _values(rows).mean(axis=1)
    expected = tie_calibrated_accuracy(lengths, human, [row["image"] for row in rows])
    assert result.pairwise["length"].accuracy == pytest.approx(100 * expected.accuracy)
    assert result.pairwise["length"].pairs == 12 * 6
    by_system = [(lengths[s::4].mean(), human[s::4].mean()) for s in range(4)]
    expected = scipy.stats.kendalltau(*zip(*by_system, strict=True)).statistic
    assert result.system_level["length"]["tau-b"] == pytest.approx(100 * expected)


def test_the_command_prints_what_the_function_returns(caplens, write):
    path = write("rated.jsonl", _rows())
    said = caplens("agreement", path, "-m", "length,bleu1", "--resamples", 20)
    assert said.status == 0, said.err
    assert "Krippendorff's alpha" in said.out
    assert "Human ceiling" in said.out
    document = json.loads(caplens("agreement", path, "-m", "length,bleu1", "--resamples", 20, "--json").out)
    expected = package.agreement(path, ["length", "bleu1"], resamples=20).to_dict()
    assert {key: document[key] for key in expected} == expected


def test_without_metrics_those_are_computed_that_find_what_they_need(write):
    rows = [{key: value for key, value in row.items() if key != "references"} for row in _rows()]
    assert set(package.agreement(write("a.jsonl", rows), resamples=5).results) == {"length"}
    everything = package.agreement(write("b.jsonl", _rows()), resamples=5)
    assert set(everything.results) == {"bleu1", "bleu4", "rouge-l", "cider", "length"}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda row: {**row, "ratings": []}, {}, "no caption has 'ratings'"),
        (lambda row: {**row, "ratings": [3]}, {}, "all ratings are the same"),
        (lambda row: row, {"protocol": "mode"}, "there is no protocol 'mode'"),
        (lambda row: row, {"coefficients": ["r2"]}, "unknown coefficient 'r2'"),
        (lambda row: row, {"criterion": "fluency"}, "by the criterion 'fluency'"),
        (
            lambda row: {**row, "ratings": [{"value": 1, "criterion": "a"}, {"value": 2, "criterion": "b"}]},
            {},
            r"rated by several criteria \(a, b\)",
        ),
    ],
)
def test_ratings_that_cannot_be_used_are_one_sentence(change, options, message):
    with pytest.raises(package.InputError, match=message):
        package.agreement([change(row) for row in _rows()], ["length"], **options)


def test_one_criterion_of_several_counts():
    rows = [
        {**row, "ratings": [{"value": n % 5, "criterion": "fluency"}, {"value": len(row["caption"]), "criterion": "detail"}]}
        for n, row in enumerate(_rows())
    ]
    letters = package.metric(lambda caption: len(caption), name="letters")
    result = package.agreement(rows, [letters], criterion="detail", coefficients=["pearson"], resamples=5)
    assert result.results["letters"]["pearson"].value == pytest.approx(100)


def test_a_report_shows_the_captions_and_the_raters(write, tmp_path, caplens):
    path = write("rated.jsonl", _rows())
    assert caplens("agreement", path, "-m", "length,bleu1", "--resamples", 20, "-o", tmp_path / "agreement.json").status == 0
    assert caplens("report", tmp_path / "agreement.json", "-o", tmp_path / "report.html").status == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Human ceiling" in page
    assert "pairwise accuracy" in page
    assert _rows()[0]["caption"] in page


def test_scores_made_elsewhere_take_part(write, caplens):
    rows = _rows()
    scores = write("mine.jsonl", [{"id": row["id"], "score": len(row["caption"])} for row in rows])
    said = caplens("agreement", write("rated.jsonl", rows), "--scores", scores, "-m", "length", "--resamples", 5, "--json")
    assert set(json.loads(said.out)["results"]) == {"length", "mine"}


def test_every_metric_that_needs_a_model_is_computed_with_each():
    first, second = FakeBackbone(), FakeBackbone()
    second.name = "second"
    red = Image.new("RGB", (8, 8), "red")
    rows = [Sample(str(n), "a dog" + " runs" * n, ("a dog",), image=red, ratings=(n,)) for n in range(4)]
    result = package.agreement(rows, ["clip+cider", "clipscore", "length"], models=[first, second], resamples=5)
    assert set(result.results) == {"length", *(f"{m}[{b.name}]" for m in ("clip+cider", "clipscore") for b in (first, second))}


def test_captions_that_one_metric_cannot_score_are_left_out_by_name_and_no_failure():
    rows = [Sample(str(n), "a dog" + " runs" * n, ("a dog",) if n else (), ratings=(n,)) for n in range(5)]
    result = package.agreement(rows, ["cider", "length"], resamples=5)
    assert "1 captions were left out, because cider cannot score them: there are no references." in result.warnings
    assert (result.rows, result.failed) == (4, 0)

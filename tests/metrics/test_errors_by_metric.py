"""An error belongs to the metric that could not score a caption, and to no other."""

import numpy as np
import pytest
from fake_backbone import FakeBackbone
from PIL import Image

import caplens as package
from caplens.data import Sample
from caplens.embed import Engine

RED = Image.new("RGB", (8, 8), "red")


def _score(samples, metrics, **options):
    return package.score(samples, metrics, model=Engine(FakeBackbone()), resamples=0, **options)


def test_a_caption_that_one_metric_cannot_score_is_scored_by_the_others():
    samples = [
        Sample("both", "a dog", ("a dog",), image=RED),
        Sample("no references", "a dog", image=RED),
        Sample("no image", "a dog", ("a dog",)),
        Sample("nothing", "", ("a dog",), image=RED),
    ]
    result = _score(samples, ["clipscore", "cider"])
    assert {row: error.reason for row, error in result["clipscore"].errors.items()} == {
        2: "there is no image",
        3: "the caption is empty",
    }
    assert {row: error.reason for row, error in result["cider"].errors.items()} == {
        1: "there are no references",
        3: "the caption is empty",
    }
    assert (result["clipscore"].scored, result["cider"].scored) == (2, 2)
    assert result.failed_rows == [3]
    document = result.to_dict()
    assert document["counts"]["failed"] == 1
    assert document["metrics"]["cider"]["counts"] == {"scored": 2, "failed": 2, "unusable": 0}
    assert document["errors"]["no image"] == "there is no image"


def test_something_given_that_cannot_be_used_is_a_failure_whatever_else_was_scored(tmp_path):
    samples = [Sample("1", "a dog", ("a dog",), image=RED), Sample("2", "a dog", ("a dog",), image=tmp_path / "missing.jpg")]
    result = _score(samples, ["clipscore", "cider"])
    assert result.failed_rows == [1]
    assert result["clipscore"].errors[1].unusable
    assert 1 not in result["cider"].errors
    assert not np.isnan(result["cider"].values).any()


def test_whole_languages_without_references_are_one_line_with_counts():
    samples = [
        *(Sample(f"en{n}", "a dog", ("a dog",), lang="en") for n in range(3)),
        *(Sample(f"de{n}", "ein Hund", lang="de") for n in range(4)),
        *(Sample(f"ja{n}", "犬", lang="ja") for n in range(2)),
    ]
    result = _score(samples, ["bleu1", "cider", "length"])
    lines = [warning for warning in result.warnings if "no references" in warning]
    assert lines == ["bleu1, cider: 6 of 9 captions have no score: there are no references (all of the languages de, ja)."]
    assert result.failed == 0


def test_systems_without_references_are_named():
    samples = [Sample(f"{s}{n}", "a dog", ("a dog",) if s == "a" else (), system=s) for s in "ab" for n in range(2)]
    warnings = _score(samples, ["bleu1", "length"]).warnings
    assert "bleu1: 2 of 4 captions have no score: there are no references (all of the systems b)." in warnings


def test_a_metric_that_scores_nothing_is_said_and_an_error_only_if_it_is_alone():
    samples = [Sample("1", "a dog"), Sample("2", "a cat")]
    result = _score(samples, ["length", "cider"])
    assert "cider: 2 of 2 captions have no score: there are no references (all captions)." in result.warnings
    assert np.isnan(result["cider"].corpus)
    assert result.failed == 0
    with pytest.raises(package.InputError, match="none of the 2 samples can be scored with cider: there are no references"):
        _score(samples, ["cider"])


def test_clip_and_cider_shares_the_collectors_of_its_parts():
    backbone = FakeBackbone()
    engine = Engine(backbone)
    samples = [Sample(str(n), f"a dog {n}", (f"dog {n}", "dog"), image=Image.new("RGB", (8, 8), (n, 0, 0))) for n in range(6)]
    package.score(samples, ["clipscore", "cider", "clip+cider"], model=engine, resamples=0)
    together = sum(backbone.batches)
    alone = FakeBackbone()
    package.score(samples, ["clipscore"], model=Engine(alone), resamples=0)
    assert together == sum(alone.batches)
    from caplens.metrics import get_metric
    from caplens.metrics.scoring import _collectors

    metrics = [get_metric(name, model=engine) for name in ("clipscore", "cider", "clip+cider")]
    collectors, keys = _collectors(metrics)
    assert len(collectors) == 2
    assert keys[2] == [keys[0][0], keys[1][0]]


def test_input_columns_are_carried_over():
    rows = [
        {"id": "1", "caption": "a dog", "references": ["a dog"], "source": "ein Hund", "topic": "animals", "lang": "en"},
        {"id": "2", "caption": "a cat", "references": ["a cat"], "url": "x"},
    ]
    result = package.score(rows, ["bleu1"], keep_columns=True, resamples=0)
    first, second = result.to_rows()
    assert (first["caption"], first["references"], first["source"], first["topic"]) == ("a dog", ["a dog"], "ein Hund", "animals")
    assert (second["topic"], second["url"]) == (None, "x")
    only = package.score(rows, ["bleu1"], keep_columns=["topic"], resamples=0)
    assert list(next(only.to_rows())) == ["id", "topic", "lang", "bleu1", "error"]
    assert only.to_dict()["columns"] == {"topic": ["animals", None]}


def test_errors_of_rows_with_the_same_id_are_all_kept():
    rows = [{"id": "1", "caption": ""}, {"id": "1", "caption": "a dog"}, {"id": "2", "caption": "a cat"}]
    errors = package.score(rows, ["length"], resamples=0).to_dict()["errors"]
    assert errors == {"1 (row 1)": "the caption is empty", "1 (row 2)": "the id '1' appears twice, on row 1 and row 2"}


def test_a_column_to_keep_that_no_row_has_is_said():
    result = package.score([{"id": "1", "caption": "a dog", "references": ["a dog"]}], ["bleu1"], keep_columns=["topc", "id"])
    assert "no caption has a column 'topc' to keep." in result.warnings
    assert not any("'id'" in warning for warning in result.warnings)


def test_every_caption_without_a_score_is_in_the_warnings_of_the_result():
    samples = [Sample("1", "a dog", ("a dog",)), Sample("2", "", ("a dog",)), Sample("3", "a cat", invalid="line 3 is odd")]
    result = _score(samples, ["bleu1", "cider"])
    assert "1 of 3 captions have no score: the caption is empty (2)." in result.warnings
    assert "1 of 3 captions have no score (3: line 3 is odd)." in result.warnings
    assert "1 of 3 captions scored" in str(result)


def test_many_reasons_share_a_line(tmp_path):
    samples = [Sample(str(n), "a dog", image=tmp_path / f"{n}.jpg") for n in range(9)] + [Sample("red", "a dog", image=RED)]
    (line,) = [warning for warning in _score(samples, ["clipscore"]).warnings if "9 of 10 captions have no score" in warning]
    assert "0.jpg" in line
    assert "4.jpg" in line
    assert "5.jpg" not in line
    assert "… and 4 more" in line


def test_a_row_that_names_no_image_is_not_something_unusable(tmp_path):
    RED.save(tmp_path / "1.png")
    rows = [Sample("1", "a dog", ("a dog",)), Sample("2", "a cat", ("a cat",)), Sample("3", "a cat", ("a cat",), image="x.jpg")]
    errors = _score(rows, ["clipscore", "cider"], images=tmp_path)["clipscore"].errors
    assert errors[1] == ("the folder has no image called 2", False)
    assert errors[2].unusable

"""What a third attacker found in joins and columns: other captions, images and scores than those meant."""

import json

import numpy as np
import pytest
from extras import need
from faults.harness import run_caplens, write_rows

import caplens
from caplens.data import Rating, References, Sample, SampleFile, read_references, with_images
from caplens.data.inputs import read_captions
from caplens.errors import InputError
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.external import ExternalScores


def test_names_of_columns_mean_the_same_in_every_format(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    row = {"ID": "1", "Caption": "a dog", "References": "the dog", "Lang": "ja", "x": "y"}
    write_rows(tmp_path / "a.jsonl", row)
    (tmp_path / "a.json").write_text(json.dumps([row]), encoding="utf-8")
    (tmp_path / "a.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n", encoding="utf-8")
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    samples = [list(SampleFile(tmp_path / f"a.{suffix}")) for suffix in ("jsonl", "json", "csv", "parquet")]
    assert samples[0] == [Sample("1", "a dog", ("the dog",), lang="ja", meta={"x": "y"})]
    assert all(other == samples[0] for other in samples)
    write_rows(tmp_path / "b.jsonl", {"id": "1", "caption": "a dog", "Caption": "a cat"})
    with pytest.raises(InputError, match="'Caption' and 'caption' mean the same"):
        list(SampleFile(tmp_path / "b.jsonl"))


def test_a_whole_float_is_an_image_id(tmp_path):
    write_rows(
        tmp_path / "a.jsonl",
        {"id": "1", "image_id": 2.0, "caption": "a dog"},
        {"id": "2", "image_id": float("nan"), "caption": ""},
    )
    (tmp_path / "a.jsonl").write_text((tmp_path / "a.jsonl").read_text().replace("NaN", "null"), encoding="utf-8")
    assert [sample.image_id for sample in SampleFile(tmp_path / "a.jsonl")] == ["2", None]
    write_rows(tmp_path / "b.jsonl", {"id": "1", "image_id": 2.5, "caption": "a dog"})
    with pytest.raises(InputError, match=r"'image_id' must be text or a whole number, not 2\.5"):
        list(SampleFile(tmp_path / "b.jsonl"))


def test_references_of_one_id_name_one_image(tmp_path):
    write_rows(tmp_path / "r.jsonl", {"id": "1", "image": "a.jpg", "caption": "x"}, {"id": "1", "image": "b.jpg", "caption": "y"})
    with pytest.raises(InputError, match=r"the references of '1' name two images, 'a.jpg' and 'b.jpg'"):
        read_references(tmp_path / "r.jsonl")


@pytest.mark.parametrize("image_id", [1, "1"])
def test_ids_of_coco_are_text(tmp_path, image_id):
    document = {"images": [{"id": 1, "file_name": "cat.jpg"}], "annotations": [{"id": 1, "image_id": image_id, "caption": "x"}]}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    assert read_references(tmp_path / "a.json").image_of("1") == "cat.jpg"
    document["images"].append({"id": "1", "file_name": "dog.jpg"})
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="has another file name before"):
        read_references(tmp_path / "a.json")


@pytest.mark.parametrize("order", [1, -1])
def test_a_caption_whose_two_ids_are_equal_is_joined_by_either(order):
    references = References.of({"10": "ten", "20": "twenty"})
    captions = [
        Sample("100", "a", meta={"image_id": "10"}),
        Sample("20", "b", meta={"image_id": "20"}),
    ][::order]
    joined = {sample.caption: sample.references for sample in references.joined(captions)}
    assert joined == {"a": ("ten",), "b": ("twenty",)}


def test_columns_that_are_kept_have_a_limit_and_names_of_their_own(tmp_path):
    rows = [{"id": str(number), "caption": "a", f"k{number}": 1} for number in range(1001)]
    with pytest.raises(InputError, match="more than 1,000 different columns"):
        caplens.score(write_rows(tmp_path / "a.jsonl", *rows), ["length"], keep_columns=True, resamples=0)
    path = write_rows(tmp_path / "b.jsonl", {"id": "1", "caption": "a dog", "length": 99, "error": "E", "doubt": "D"})
    (row,) = caplens.score(path, ["length"], keep_columns=True, resamples=0).to_rows()
    kept = {"length (input)": 99, "error (input)": "E", "doubt (input)": "D"}
    assert row == {"id": "1", "caption": "a dog", **kept, "length": 2.0, "error": None}


def test_the_report_of_agreement_shows_each_caption_with_its_own_scores(tmp_path):
    from caplens.report.cases import find_cases
    from caplens.report.documents import InputPaths, read_documents

    rows = [
        {"id": str(number), "image": f"{number}.jpg", "caption": caption, "system": system, "ratings": [rating]}
        for number in range(3)
        for caption, system, rating in (
            ("good one", "base", 5 - number / 10),
            ("terrible thing here now", "large", 1 + number / 10),
        )
    ]
    path = write_rows(tmp_path / "two.jsonl", *rows)
    status, message = run_caplens(tmp_path, "agreement", path, "-m", "length", "-o", "two.json", "--resamples", "5")
    assert status == 0, message
    (document,) = read_documents(tmp_path / "two.json")
    cases = find_cases(document, InputPaths())
    shown = {(case.sample.id, case.sample.caption, case.scores["length"], round(case.human, 2)) for case in cases}
    assert shown == {(row["id"], row["caption"], float(len(row["caption"].split())), row["ratings"][0]) for row in rows}


def test_one_score_is_not_that_of_two_captions():
    samples = [Sample("1", "a dog", lang="en-US"), Sample("1", "a hound", lang="en-GB")]
    with pytest.raises(InputError, match="several languages, of several systems"):
        caplens.score(samples, [ExternalScores("mine", {("1", "en", None): 0.9})], resamples=0)


def test_an_id_of_two_images_is_refused(tmp_path):
    for suffix in ("jpg", "png"):
        (tmp_path / f"1.{suffix}").write_bytes(b"")
    with pytest.raises(InputError, match=r"could be 1\.jpg and 1\.png"):
        list(with_images([Sample("1", "a dog")], tmp_path))
    (named,) = with_images([Sample("1", "a dog", image="1.png")], tmp_path)
    assert str(named.image).endswith("1.png")


def test_ids_of_images_are_text():
    samples = read_captions([{"id": 1, "caption": "a dog"}], images={1: b"x"})
    assert [sample.image for sample in samples] == [b"x"]
    with pytest.raises(InputError, match="two keys are the same id"):
        read_captions([{"id": 1, "caption": "a dog"}], images={1: b"x", "1": b"y"})


def test_a_null_character_does_not_end_a_text():
    need("MeCab")
    from caplens.text.tokenizer import get_tokenizer

    tokenizer = get_tokenizer("ja-mecab", "ja")
    assert tokenizer("猫がいる\0猫がいる") == tokenizer("猫がいる") * 2


def test_an_id_is_one_document_however_its_references_name_their_language(tmp_path):
    path = write_rows(
        tmp_path / "r.jsonl",
        {"id": "1", "caption": "a dog"},
        {"id": "1", "lang": "en", "caption": "a dog"},
        {"id": "2", "lang": "en", "caption": "a cat"},
    )
    assert DocumentFrequency.load(path, lang="en").documents == 2


def test_ratings_by_several_criteria_are_not_mixed(tmp_path):
    rows = [
        {"id": str(number), "caption": "a " * number, "ratings": [{"value": number, "criterion": criterion}]}
        for number, criterion in enumerate(["fluency", "adequacy", "fluency"], 1)
    ]
    path = write_rows(tmp_path / "r.jsonl", *rows)
    with pytest.raises(InputError, match=r"several criteria \(adequacy, fluency\)"):
        caplens.agreement(path, ["length"], resamples=5)
    assert caplens.agreement(path, ["length"], criterion="fluency", resamples=5).rows == 2


def test_a_rater_is_compared_with_the_mean_of_the_others():
    from caplens.benchmarks.raters import _against_others, _rater_table
    from caplens.stats import get_coefficient

    rng = np.random.default_rng(0)
    table = np.where(rng.random((5, 40)) < 0.6, rng.integers(1, 6, (5, 40)).astype(float), np.nan)
    ratings = [
        [Rating(value, rater=str(rater)) for rater, value in enumerate(column) if not np.isnan(value)] for column in table.T
    ]
    sparse = _rater_table(ratings)
    places = dict(zip(_order(ratings), sparse.rows, strict=True))
    for rater in range(5):
        others = np.delete(table, rater, axis=0)
        both = ~np.isnan(table[rater]) & (~np.isnan(others)).any(axis=0)
        expected = get_coefficient("pearson")(table[rater, both], np.nanmean(others[:, both], axis=0))
        assert _against_others(sparse, places[str(rater)], get_coefficient("pearson")) == pytest.approx(expected)


def _order(ratings):
    """Raters in the order in which they first rate."""
    return dict.fromkeys(rating.rater for of_caption in ratings for rating in of_caption)


def test_a_value_that_is_there_twice_is_refused(tmp_path):
    from caplens.comparison.languages import read_quality
    from caplens.data.records import add_once

    table = {}
    add_once(table, "a", 1, tmp_path)
    add_once(table, "a", 1, tmp_path)
    with pytest.raises(InputError, match="another value for 'a' before"):
        add_once(table, "a", 2, tmp_path)
    row = {"lang": "de", "caption": "x", "quality": 1}
    with pytest.raises(InputError, match="another value"):
        read_quality(write_rows(tmp_path / "q.jsonl", row, {**row, "quality": 0}))


def test_photos_of_xvnli_are_found_by_their_exact_name_first(tmp_path):
    from caplens.benchmarks import get_benchmark

    for name in ("123.jpg", "123_other.jpg", "123_z.txt"):
        (tmp_path / name).write_bytes(b"")
    (sample,) = get_benchmark("xvnli").located([Sample("1", "a", image="123.jpg")], tmp_path)
    assert str(sample.image).endswith("123.jpg")
    (tmp_path / "123.jpg").rename(tmp_path / "123_third.jpg")
    with pytest.raises(InputError, match=r"could be 123_other\.jpg or 123_third\.jpg"):
        get_benchmark("xvnli").located([Sample("1", "a", image="123.jpg")], tmp_path)


def test_the_report_says_that_rated_captions_have_changed(tmp_path):
    rows = [{"id": str(number), "caption": "a " * number, "ratings": [number]} for number in range(1, 4)]
    path = write_rows(tmp_path / "r.jsonl", *rows)
    assert run_caplens(tmp_path, "agreement", path, "-m", "length", "--resamples", "5", "-o", "r.json")[0] == 0
    for changed in (False, True):
        if changed:
            write_rows(path, *[{**row, "caption": "quite another caption"} for row in rows[:1]], *rows[1:])
        assert run_caplens(tmp_path, "report", "r.json", "-o", "r.html")[0] == 0
        assert ("have changed since they were scored" in (tmp_path / "r.html").read_text(encoding="utf-8")) == changed


def test_names_are_no_html_in_markdown():
    from caplens.report import markdown
    from caplens.results.table import Table

    shown = markdown(Table(["system"], [["<img src=x>"], ["b\\|c"], ["[a](b)"]]))
    assert "| <img" not in shown
    assert "b\\\\\\|c" in shown
    assert "[a](b)" not in shown

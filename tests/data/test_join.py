"""One rule joins captions and references in every format: a row with `id` and `image_id` is joined by what both sides share."""

import csv
import io
import json

import pytest

import caplens
from caplens.data import SampleFile, read_references, with_images
from caplens.data.writing import write_samples
from caplens.errors import InputError

REFERENCES = {"7": ["a dog runs"], "8": ["a cat sleeps"]}
ROWS = [{"id": "a", "image_id": "7", "caption": "a dog runs"}, {"id": "b", "image_id": "8", "caption": "a cat sleeps"}]
CROSSED = [{"id": 7, "image_id": 8, "caption": "a dog runs"}, {"id": 8, "image_id": 7, "caption": "a cat sleeps"}]


def _csv(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


FORMATS = {
    "captions.json": json.dumps,
    "captions.jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "captions.csv": _csv,
}
every_format = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture
def write(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text(FORMATS[name](rows), encoding="utf-8")
        return path

    return write


@every_format
def test_the_column_that_the_references_know_joins(write, name, caplog):
    result = caplens.score(write(name, ROWS), ["bleu1"], references=REFERENCES, resamples=0)
    assert result["bleu1"].values[0] == pytest.approx(1)
    assert result.ids == ["7", "8"]
    assert "by the 'image_id' of captions and the 'id' of references" in caplog.text
    by_id = caplens.score(write(name, ROWS), ["bleu1"], references={"a": ["a dog runs"]}, resamples=0)
    assert (round(by_id["bleu1"].values[0], 6), by_id.ids) == (1.0, ["a", "b"])


@every_format
def test_two_columns_that_could_both_be_meant_are_an_error(write, name):
    with pytest.raises(InputError, match=r"in several ways .*'id' of captions .*'image_id' of captions"):
        caplens.score(write(name, CROSSED), ["bleu1"], references=REFERENCES, resamples=0)


@every_format
def test_references_with_both_columns_are_joined_by_what_captions_have(write, name):
    annotations = [{"id": 1, "image_id": 7, "caption": "a dog runs"}, {"id": 2, "image_id": 7, "caption": "the dog runs"}]
    references = read_references(write(name, annotations))
    result = caplens.score({"7": "the dog runs"}, ["bleu1"], references=references, resamples=0)
    assert result["bleu1"].values[0] == pytest.approx(1)
    with pytest.raises(InputError, match="2 ids but 1 images; both could be meant"):
        list(references)
    with pytest.raises(InputError, match="in several ways"):
        caplens.score([{"id": "1", "image_id": "7", "caption": "the dog runs"}], ["bleu1"], references=references, resamples=0)


def test_captions_joined_some_by_one_column_and_some_by_the_other_are_an_error():
    rows = [{"id": "7", "image_id": "x", "caption": "a dog"}, {"id": "y", "image_id": "8", "caption": "a cat"}]
    with pytest.raises(InputError, match="in several ways"):
        caplens.score(rows, ["bleu1"], references=REFERENCES, resamples=0)


def test_captions_before_the_first_match_are_joined_like_the_others():
    rows = [{"id": "z", "image_id": "6", "caption": "a bird"}, *ROWS]
    result = caplens.score(rows, ["bleu1"], references=REFERENCES, resamples=0)
    assert result.ids == ["6", "7", "8"]
    twice = [*ROWS, {"id": "c", "image_id": "7", "caption": "a dog runs"}]
    assert "appears twice" in caplens.score(twice, ["bleu1"], references=REFERENCES, resamples=0).errors["7 (row 3)"]


@every_format
def test_systems_are_not_paired_across_images(write, name):
    other = [{**row, "image_id": image} for row, image in zip(ROWS, ("8", "7"), strict=True)]
    with pytest.raises(InputError, match="about different images"):
        caplens.compare({"a": write(name, ROWS), "b": other}, ["length"], resamples=1)
    with pytest.raises(InputError, match="both could be meant"):
        caplens.compare({"a": CROSSED, "b": [{"id": 7, "caption": "a dog"}]}, ["length"], resamples=1)
    same = caplens.compare({"a": write(name, ROWS), "b": ROWS}, ["length"], resamples=1)
    assert same.samples == 2


def test_an_image_is_looked_up_by_either_id_but_not_by_both(tmp_path):
    (tmp_path / "7.jpg").touch()
    (sample,) = with_images(caplens.SampleFile(_rows(tmp_path, ROWS[:1])), tmp_path)
    assert sample.image == str(tmp_path / "7.jpg")
    (tmp_path / "a.jpg").touch()
    with pytest.raises(InputError, match="both could be meant"):
        list(with_images(caplens.SampleFile(_rows(tmp_path, ROWS[:1])), tmp_path))


def _rows(folder, rows):
    path = folder / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.json"])
def test_both_columns_survive_a_conversion(tmp_path, name):
    samples = list(SampleFile(_rows(tmp_path, ROWS)))
    write_samples(samples, tmp_path / name, "coco" if name == "out.json" else None)
    assert [(sample.id, sample.image_id) for sample in SampleFile(tmp_path / name)] == [("a", "7"), ("b", "8")]

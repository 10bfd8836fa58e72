"""Every format reads what it wrote, and is told by what it holds."""

import bz2
import gzip
import json
import lzma
from dataclasses import replace

import pytest
from extras import need
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caplens.data import Rating, References, Sample, SampleFile, read_references, write_samples
from caplens.errors import InputError

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=30)
RATINGS = st.builds(Rating, st.integers(1, 5), st.none() | st.text("ab", min_size=1), st.none() | st.just("fluency"))
SAMPLES = st.lists(
    st.builds(
        Sample,
        id=st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=10),
        caption=TEXT,
        references=st.lists(TEXT, max_size=3).map(tuple),
        image=st.none() | st.text("abc/.", min_size=1, max_size=8),
        lang=st.sampled_from([None, "en", "zh-Hans", "quz"]),
        system=st.none() | st.text("xyz", min_size=1),
        ratings=st.lists(st.floats(-5, 5) | st.integers(1, 5) | RATINGS, max_size=3).map(tuple),
        source=st.none() | st.text("st", min_size=1),
        meta=st.dictionaries(st.text("klm", min_size=1, max_size=4), st.integers() | TEXT | st.lists(st.booleans()), max_size=2),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda sample: sample.id,
)


def _format(path):
    return SampleFile(path, caption_required=False).format


def _texts(sample):
    return (sample.id, sample.caption)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
@given(samples=SAMPLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path, suffix, samples):
    if suffix == "parquet":
        need("pyarrow")
    if suffix == "tsv" and any("\t" in text and "\n" in text for sample in samples for text in _texts(sample)):
        return
    path = tmp_path / f"samples.{suffix}"
    assert write_samples(samples, path) == len(samples)
    assert list(SampleFile(path)) == samples


@given(samples=SAMPLES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_coco_files_give_back_captions_references_and_the_rest(tmp_path, samples):
    results, annotations = tmp_path / "results.json", tmp_path / "annotations.json"
    write_samples(samples, results, "coco", annotations)
    assert _format(results) == "coco-results"
    bare = [replace(sample, references=()) for sample in samples]
    assert list(SampleFile(results)) == bare
    if any(sample.references for sample in samples):
        assert _format(annotations) == "coco-annotations"
        assert list(read_references(annotations).joined(SampleFile(results))) == samples


def test_dictionaries_of_clipscore_give_back_captions_and_references(tmp_path):
    samples = [Sample("a", "a dog", ("one dog", "the dog")), Sample("b", "a cat", ("one cat",))]
    captions, references = tmp_path / "captions.json", tmp_path / "references.json"
    write_samples(samples, captions, "dictionary", references)
    assert json.loads(captions.read_text()) == {"a": "a dog", "b": "a cat"}
    assert json.loads(references.read_text()) == {"a": ["one dog", "the dog"], "b": ["one cat"]}
    assert list(read_references(references).joined(SampleFile(captions))) == samples


def test_the_format_is_told_by_content_not_by_name(write):
    row = {"id": "1", "caption": "a dog"}
    assert _format(write("a.txt", json.dumps(row) + "\n" + json.dumps({**row, "id": "2"}))) == "jsonl"
    assert _format(write("b.csv", [{"image_id": 1, "caption": "a dog"}])) == "coco-results"
    assert _format(write("c.csv", {"x": "a dog"})) == "dictionary"
    assert _format(write("d.json", "id\tcaption\n1\ta dog\n")) == "tsv"
    assert _format(write("e.json", "id;caption\n1;a dog\n")) == "csv"
    assert _format(write("f.tsv", '{\n "x": "a dog",\n "y": "a cat"\n}')) == "dictionary"
    assert _format(write("g", json.dumps(row))) == "jsonl"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files_are_read_as_they_are(write, pack):
    path = write("captions.jsonl", pack(b'{"id": 1, "caption": "a dog"}\n'))
    assert list(SampleFile(path)) == [Sample("1", "a dog")]


def test_a_byte_order_mark_is_no_part_of_the_text(write):
    assert list(SampleFile(write("a.csv", b"\xef\xbb\xbfid,caption\n1,a dog\n"))) == [Sample("1", "a dog")]


def test_references_may_be_rows_of_captions(write):
    rows = [{"id": "1", "caption": "a dog"}, {"id": "1", "caption": "one dog"}, {"id": "2", "caption": "a cat"}]
    found = read_references(write("references.jsonl", rows))
    assert list(found) == [("1", None, ("a dog", "one dog")), ("2", None, ("a cat",))]


def test_references_are_joined_by_language_where_both_sides_name_one():
    references = References()
    references.add("1", "en", ("they die",))
    references.add("1", "de", ("der hund",))
    references.add("2", None, ("a cat",))
    samples = [Sample("1", "x", lang="en-GB"), Sample("1", "x", lang="de"), Sample("2", "x", lang="de"), Sample("2", "x")]
    found = [sample.references for sample in references.joined(samples)]
    assert found == [("they die",), ("der hund",), ("a cat",), ("a cat",)]
    with pytest.raises(InputError, match="in several languages"):
        references.get(Sample("1", "x"))
    assert references.get(Sample("1", "x"), "de-AT") == ("der hund",)
    references.add("2", "en", ("one cat",))
    assert references.get(Sample("2", "x")) == ("a cat", "one cat")
    assert references.get(Sample("2", "x", lang="de")) == ("a cat",)


def test_a_missing_caption_is_not_replaced_by_a_reference(write, tmp_path):
    rows = [{"id": "1", "caption": "a dog"}, {"id": "2", "caption": None, "references": ["the cat"]}]
    path = write("a.jsonl", rows)
    for suffix in ("jsonl", "csv", "tsv", "parquet"):
        if suffix == "parquet":
            need("pyarrow")
        target = tmp_path / f"b.{suffix}"
        write_samples(SampleFile(path, caption_required=False), target)
        assert [sample.caption for sample in SampleFile(target)] == ["a dog", ""]
        assert [sample.caption for sample in SampleFile(target, caption_required=False)] == ["a dog", None]
    with pytest.raises(InputError, match="holds references, not captions"):
        list(SampleFile(write("c.json", {"1": "a dog", "2": ["a cat"]})))
    assert [s.caption for s in SampleFile(write("d.json", {"1": ["a dog"], "2": ["a cat"]}))] == ["a dog", "a cat"]


def test_a_reference_cell_is_a_text_or_a_json_list(write):
    def read(cell):
        return next(iter(SampleFile(write("a.csv", f"id,caption,references\n1,x,{cell}\n")))).references

    assert read("a dog") == ("a dog",)
    assert read("2") == ("2",)
    assert read('"[""a"", ""b""]"') == ("a", "b")
    with pytest.raises(InputError, match=r"line 2: 'references' is not JSON.*Write it like"):
        read("\"['a dog', 'the dog']\"")


def test_stray_quotes_in_a_tsv_swallow_no_rows(write):
    path = write("a.tsv", 'id\tcaption\n1\tx\n2\t"a cat\n3\ty\n4\ta fish"\n')
    with pytest.raises(InputError, match="line 3: a quote at the start of a cell runs over several lines"):
        list(SampleFile(path))


def test_names_of_columns_are_known_in_any_case(write):
    assert list(SampleFile(write("a.csv", "ID,Caption,Origin\n1,a dog,web\n"))) == [Sample("1", "a dog", meta={"Origin": "web"})]


def test_a_first_line_of_two_megabytes_is_still_jsonl(write):
    rows = [{"id": "1", "caption": "x" * 2_000_000}, {"id": "2", "caption": "y"}]
    assert [sample.id for sample in SampleFile(write("a.jsonl", rows))] == ["1", "2"]


def test_reading_is_a_stream(write):
    path = write("captions.jsonl", '{"id": 1, "caption": "a dog"}\n' + "{broken\n")
    samples = iter(SampleFile(path))
    assert next(samples).caption == "a dog"
    with pytest.raises(InputError, match="line 2: broken JSON"):
        next(samples)


def test_converting_never_loses_anything_silently(tmp_path):
    sample = Sample("1", "a dog", ("one dog",), lang="en")
    for to, message in (("coco", "second file"), ("dictionary", "second file")):
        with pytest.raises(InputError, match=message):
            write_samples([sample], tmp_path / "out.json", to)
    with pytest.raises(InputError, match="dictionary cannot hold lang"):
        write_samples([sample], tmp_path / "out.json", "dictionary", tmp_path / "references.json")
    with pytest.raises(InputError, match="named twice"):
        write_samples([sample], tmp_path / "out.json", "coco", tmp_path / "out.json")
    with pytest.raises(InputError, match="coco cannot hold lang"):
        write_samples([Sample("1", None, ("one dog",), lang="en")], tmp_path / "out.json", "coco", tmp_path / "r.json")
    with pytest.raises(InputError, match="compressed output is not supported"):
        write_samples([sample], tmp_path / "out.jsonl.gz", "jsonl")
    assert list(tmp_path.iterdir()) == []
    assert write_samples([sample], tmp_path / "out.json", "dictionary", lossy=True) == 1

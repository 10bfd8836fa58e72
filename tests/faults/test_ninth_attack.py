"""What a ninth attacker found: parts of data sets, tables inside of tables, and files that are larger than they look."""

import gzip
import io
import json
import os
import sqlite3
import tarfile
import zipfile
from importlib.resources import files

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.calibration.set_faults import duplicate_faults
from caplens.calibration.text_faults import TextContext, text_faults
from caplens.data import Sample, SampleFile
from caplens.data.encodings import as_utf8
from caplens.embed.store import Store
from caplens.errors import InputError
from caplens.results.leaderboard import Leaderboard, LeaderboardEntry
from caplens.results.loading import load_results

ROWS = [{"id": "1", "caption": "a dog runs on the grass"}, {"id": "2", "caption": "狗在草地上跑", "language": "zh"}]


def _board(value=50.0, **changes):
    entry = LeaderboardEntry("b", "p", "en", "tau-c", "m", value, False, "us", signature="m|v:1", low=49.0, high=51.0)
    return Leaderboard([entry._replace(**changes)])


def test_a_page_is_not_written_over_its_contributions(caplens, tmp_path):
    folder = tmp_path / "board"
    folder.mkdir()
    _board().save(folder / "leaderboard.json")
    before = (folder / "leaderboard.json").read_bytes()
    for inputs in (folder / "leaderboard.json", folder):
        said = caplens("leaderboard", "build", inputs, "-o", folder)
        assert said.status == 2
        assert "named twice" in said.err or "folder of contributions" in said.err
    assert (folder / "leaderboard.json").read_bytes() == before


def test_a_page_that_cannot_be_made_leaves_no_folder_behind(caplens, tmp_path):
    (tmp_path / "empty.json").write_text("", encoding="utf-8")
    assert caplens("leaderboard", "build", tmp_path / "empty.json", "-o", tmp_path / "site").status == 2
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("changes", [{"low": 1.0}, {"signature": "m|v:2"}])
def test_contributions_that_contradict_each_other_are_an_error(caplens, tmp_path, changes):
    _board().save(tmp_path / "a.json")
    _board(**changes).save(tmp_path / "b.json")
    said = caplens("leaderboard", "build", tmp_path / "a.json", tmp_path / "b.json", "-o", tmp_path / "site")
    assert said.status == 2
    assert "in another file" in said.err


@pytest.mark.parametrize("change", [{"low": {}}, {"benchmark": None}, {"source": ["a"]}, {"value": True}, {"published": 1}])
def test_a_contribution_with_values_of_other_types_is_refused(tmp_path, change):
    content = _board().to_dict()
    content["entries"][0] |= change
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="not a result"):
        load_results(tmp_path / "a.json")


def test_a_contrast_of_systems_that_there_are_not_is_refused(tmp_path):
    captions = {str(n): f"a dog runs {n}" for n in range(4)}
    result = package.compare({"a": captions, "b": captions}, ["length"], resamples=2)
    for change in ({"first": "nobody"}, {"metric": "cider"}):
        content = json.loads(json.dumps(result.to_dict()))
        content["contrasts"][0] |= change
        (tmp_path / "c.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match="not a result"):
            load_results(tmp_path / "c.json")


def test_ids_that_appear_in_two_parts_are_noticed(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    for name in ("a", "b"):
        parquet.write_table(arrow.table({"id": ["1", "2"], "caption": [name, "a cat"]}), tmp_path / f"{name}.parquet")
    samples = list(SampleFile(tmp_path, mark_repeats=True))
    assert [bool(sample.invalid) for sample in samples] == [False, False, True, True]
    assert "a.parquet, row 1 and" in samples[2].invalid
    with pytest.raises(InputError, match="appears twice"):
        list(SampleFile(tmp_path))


def test_copies_that_datasets_keeps_beside_a_table_are_not_part_of_it(tmp_path):
    arrow = need("pyarrow")
    for name, caption in (("data-00000-of-00001", "new"), ("cache-abc", "old")):
        table = arrow.table({"id": ["1"], "caption": [caption]})
        with arrow.ipc.new_stream(str(tmp_path / f"{name}.arrow"), table.schema) as stream:
            stream.write_table(table)
    assert [sample.caption for sample in SampleFile(tmp_path)] == ["new"]


def test_rows_that_name_their_columns_may_each_have_others(tmp_path, write):
    as_jsonl = list(SampleFile(write("a.jsonl", ROWS)))
    (tmp_path / "a.csv").write_text("id,caption,language\n1,a dog runs on the grass,\n2,狗在草地上跑,zh\n", encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(ROWS), encoding="utf-8")
    for samples in (as_jsonl, list(SampleFile(tmp_path / "a.json")), list(SampleFile(tmp_path / "a.csv"))):
        assert [(sample.id, sample.lang) for sample in samples] == [("1", None), ("2", "zh")]
    wide = [
        {"image": "a.jpg", "de": "ein Hund", "en": "a dog"},
        {"image": "b.jpg", "de": "eine Katze", "en": "a cat", "fr": "un chat"},
    ]
    captions = [(sample.caption, sample.lang) for sample in SampleFile(write("wide.jsonl", wide))]
    assert captions == [("ein Hund", "de"), ("a dog", "en"), ("eine Katze", "de"), ("a cat", "en"), ("un chat", "fr")]


def test_a_column_that_means_caption_goes_before_columns_that_may_be_languages(tmp_path):
    (tmp_path / "a.csv").write_text("file,alt text,ms,kg\np0.jpg,a dog,12,3\n", encoding="utf-8")
    assert [sample.caption for sample in SampleFile(tmp_path / "a.csv")] == ["a dog"]


def test_wide_tables_inside_of_folders_are_widened_once(tmp_path):
    for name in ("p0.jpg", "p1.jpg"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "metadata.csv").write_text("file_name,de,en\np0.jpg,ein Hund,a dog\np1.jpg,eine Katze,a cat\n", encoding="utf-8")
    found = [(sample.caption, sample.lang) for sample in SampleFile(tmp_path)]
    assert found == [("ein Hund", "de"), ("a dog", "en"), ("eine Katze", "de"), ("a cat", "en")]


def test_one_id_in_two_spellings_of_a_language_is_a_repetition(write):
    rows = [{"id": "1", "caption": "a dog", "lang": lang} for lang in ("en-US", "EN-us", "en_US", "en-GB")]
    assert [bool(sample.invalid) for sample in SampleFile(write("a.jsonl", rows), mark_repeats=True)] == [
        False,
        True,
        True,
        False,
    ]


def _tar(path, members):
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def test_the_json_of_a_sample_says_its_id_and_nothing_of_it_is_lost(tmp_path):
    _tar(tmp_path / "a.tar", [("x/b.txt", b"a cat"), ("x/b.json", b'{"id": "8", "caption": "jsoncap"}')])
    (sample,) = SampleFile(tmp_path / "a.tar")
    assert (sample.id, sample.caption, sample.meta["caption (json)"], sample.meta["__key__"]) == ("8", "a cat", "jsoncap", "x/b")


def test_members_of_a_tar_with_holes_are_not_unpacked(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo("0.jpg")
        info.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(info)
    content = bytearray((tmp_path / "a.tar").read_bytes())
    # A map of one hole of 120 MB, as GNU tar writes it, and the sum of the header.
    content[386:398], content[398:410] = b"00000000000\0", b"00000000000\0"
    content[483:495] = f"{120 << 20:011o}\0".encode()
    content[148:156] = b" " * 8
    content[148:156] = f"{sum(content[:512]):06o}\0 ".encode()
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(InputError, match=r"holes|tar is damaged"):
        list(SampleFile(tmp_path / "a.tar"))


def test_images_inside_of_tables_have_lasting_names_and_groups(tmp_path, caplens):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    image = files("caplens").joinpath("examples", "cat.jpg").read_bytes()
    rows = [{"image": {"bytes": image, "path": "p0.jpg"}, "text": text} for text in ("a cat", "a brown cat")]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    samples = list(SampleFile(tmp_path / "a.parquet"))
    assert [sample.id for sample in samples] == ["p0.jpg", "p0.jpg#2"]
    assert len({sample.group for sample in samples}) == 1
    said = caplens("convert", tmp_path / "a.parquet", tmp_path / "a.jsonl")
    assert said.status == 2
    assert "inside of the file" in said.err
    assert caplens("convert", tmp_path / "a.parquet", tmp_path / "a.jsonl", "--lossy").status == 0
    assert [sample.image for sample in SampleFile(tmp_path / "a.jsonl")] == ["p0.jpg"] * 2


def _workbook(path, part, change):
    openpyxl = need("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "caption"], ["1", "a dog"]):
        book.active.append(row)
    book.save(path.with_suffix(".plain.xlsx"))
    with zipfile.ZipFile(path.with_suffix(".plain.xlsx")) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info.filename, change(content) if info.filename == part else content)


SHEET, STYLES = "xl/worksheets/sheet1.xml", "xl/styles.xml"


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (SHEET, lambda xml: b'<!DOCTYPE worksheet [<!ENTITY a "xxxx">]>' + xml, "defines entities"),
        (STYLES, lambda xml: xml.replace(b"</styleSheet>", b"<a/>" * 310_000 + b"</styleSheet>"), "more elements"),
        (SHEET, lambda xml: xml.replace(b"</row>", b"<c/>" * 2_100_000 + b"</row>", 1), "more elements"),
        (
            SHEET,
            lambda xml: xml.replace(b"</sheetData>", b'<row r="2000000"><c r="A2000000"><v>2</v></c></row></sheetData>'),
            "rows at most",
        ),
    ],
)
def test_workbooks_that_are_larger_than_they_look_are_refused(tmp_path, part, change, words):
    _workbook(tmp_path / "a.xlsx", part, change)
    with pytest.raises(InputError, match=words):
        list(SampleFile(tmp_path / "a.xlsx"))


def test_compressed_arrow_is_not_unpacked_and_shared_texts_are_one(tmp_path):
    arrow = need("pyarrow")
    table = arrow.table({"id": ["1"], "caption": ["x" * 1000]})
    options = arrow.ipc.IpcWriteOptions(compression="zstd")
    with arrow.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema, options=options) as stream:
        stream.write_table(table)
    with pytest.raises(InputError, match="compressed"):
        list(SampleFile(tmp_path / "a.arrow"))
    shared = arrow.DictionaryArray.from_arrays(arrow.array([0] * 300 + [None]), ["y" * 5000])
    table = arrow.table({"id": [str(n) for n in range(301)], "caption": shared})
    with arrow.ipc.new_stream(str(tmp_path / "b.arrow"), table.schema) as stream:
        stream.write_table(table)
    captions = [sample.caption for sample in SampleFile(tmp_path / "b.arrow") if sample.caption]
    assert len(captions) == 300
    assert len({id(caption) for caption in captions}) == 1


def test_a_table_that_unpacks_to_many_times_its_size_is_refused_at_once(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(b"id,caption\n1,\xe4\n")
        file.write((b"2," + b"\xe4" * 1021 + b"\n") * 40_000)
    with pytest.raises(InputError, match="times its size"):
        as_utf8(tmp_path / "a.csv.gz")


@pytest.mark.parametrize("before", [(1 << 20) - 1, (1 << 20) - 2, (2 << 20) - 1])
def test_a_character_across_two_chunks_is_still_utf_8(tmp_path, before):
    start = b"id,caption\n1,"
    (tmp_path / "a.csv").write_bytes(start + b"a" * (before - len(start)) + "é日".encode() + b"\n")
    assert as_utf8(tmp_path / "a.csv") == tmp_path / "a.csv"


@pytest.mark.skipif(os.name != "posix", reason="needs file names of bytes")
def test_names_that_are_not_utf_8_are_one_sentence(tmp_path, caplens):
    folder = tmp_path / "photos"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"bad\xff.jpg")).write_bytes(b"")
    except OSError:
        pytest.skip("needs a file system that takes any bytes as names")
    said = caplens("convert", folder, tmp_path / "out.csv")
    assert said.status == 2
    assert "not UTF-8" in said.err


@pytest.mark.parametrize("caption", ["a " * 200_000, "a." * 200_000, "IMG_" * 100_000, "<a " * 150_000, "{{" * 200_000])
def test_a_long_caption_takes_no_longer_than_it_must(caption):
    assert text_faults(caption, TextContext("en"))
    samples = [Sample(str(n), caption + str(n), image=f"{n}.jpg") for n in range(2)]
    assert duplicate_faults(samples, ["en", "en"]) == {}


def test_formulas_may_be_written_where_that_is_asked_for(caplens, write, tmp_path):
    path = write("a.jsonl", [{"id": "1", "caption": "=1+1 dog"}])
    for options, cell in (([], "'=1+1 dog"), (["--allow-formulas"], "=1+1 dog")):
        said = caplens("filter", path, tmp_path / "out.csv", "-m", "length", "--above", "0", *options)
        assert said.status == 0, said.err
        assert cell in (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1].split(",")


def test_a_database_of_others_stays_whatever_its_name(tmp_path):
    for number, tables in enumerate([["vectors (key, name)"], ["vectors (key, vector, cut, checksum)", "precious (a)"]]):
        path = tmp_path / f"{str(number) * 32}.vectors"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE about (model, fingerprint, used)")
            for table in tables:
                connection.execute(f"CREATE TABLE {table}")
        connection.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert all((count, broken) == (0, 0) for _, count, broken in Store(tmp_path).verify())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_characters_that_excel_cannot_hold_are_an_error(caplens, write, tmp_path):
    need("openpyxl")
    path = write("a.jsonl", [{"id": "1\x07", "caption": "a dog"}, {"id": "1", "caption": "a cat"}])
    said = caplens("convert", path, tmp_path / "out.xlsx")
    assert said.status == 2
    assert "U+0007" in said.err
    assert not (tmp_path / "out.xlsx").exists()


def test_vectors_that_are_ours_are_still_verified(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "f" * 64)
    vectors.put([b"a" * 16], np.ones((1, 4), np.float32), [False])
    vectors.close()
    assert [(count, broken) for _, count, broken in Store(tmp_path).verify()] == [(1, 0)]

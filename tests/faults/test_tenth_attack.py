"""What a tenth attacker found: fields whose column changes from row to row, rows about one image, and types that share memory."""

import io
import json
import tarfile
import time

import pytest
from extras import need

import caplens as package
from caplens.data import SampleFile, read_references
from caplens.data.encodings import as_utf8
from caplens.data.formats import spreadsheet
from caplens.errors import InputError
from caplens.results.loading import load_results


def ids_of(path, **options):
    return [sample.id for sample in SampleFile(path, mark_repeats=True, **options)]


def test_references_of_one_image_in_several_rows_are_all_its_references(write):
    references = ["image,references", "x.jpg,a dog runs on grass", "x.jpg,a brown dog is running", "y.jpg,a cat sits"]
    path = write("refs.csv", "\n".join(references) + "\n")
    captions = write("cap.csv", "image,caption\nx.jpg,a brown dog is running\nx.jpg,a dog runs on grass\ny.jpg,a cat sits\n")
    joined = list(read_references(path).joined(SampleFile(captions)))
    assert [sample.id for sample in joined] == ["x.jpg", "x.jpg#2", "y.jpg"]
    # Which image the second caption is about is not guessed: that it has no references is said.
    assert [len(sample.references) for sample in joined] == [2, 0, 1]
    result = package.score(captions, ["rouge-l"], references=path, resamples=0)
    assert result["rouge-l"].values.tolist()[::2] == [1.0, 1.0]
    assert list(result.errors) == ["x.jpg#2"]


def test_images_in_folders_of_a_table_keep_their_folders(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    pictures = {"a/1.jpg": b"first", "b/1.jpg": b"second"}
    for name, order, column in (("cap", ["a/1.jpg", "b/1.jpg"], "caption"), ("ref", ["b/1.jpg", "a/1.jpg"], "references")):
        rows = [{"image": {"bytes": pictures[path], "path": path}, column: f"caption of {path}"} for path in order]
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    assert ids_of(tmp_path / "cap.parquet") == ["a/1.jpg", "b/1.jpg"]
    joined = list(read_references(tmp_path / "ref.parquet").joined(SampleFile(tmp_path / "cap.parquet")))
    assert [sample.references for sample in joined] == [("caption of a/1.jpg",), ("caption of b/1.jpg",)]


def test_a_field_has_one_column_in_all_of_a_file(write, caplog):
    rows = [{"key": "a", "nr": "1", "caption": "x"}, {"nr": "2", "key": "b", "caption": "y"}]
    assert ids_of(write("order.jsonl", rows)) == ["a", "b"]
    assert "'nr' could be the id as well" in caplog.text
    with pytest.raises(InputError, match="no 'id'"):
        ids_of(write("later.jsonl", [{"id": "1", "key": "a", "caption": "x"}, {"key": "2", "caption": "y"}]))
    with pytest.raises(InputError, match="which rows before"):
        ids_of(write("earlier.jsonl", [{"key": "2", "caption": "y"}, {"id": "1", "key": "a", "caption": "x"}]))
    rows = [{"id": "1", "image": "cat.jpg", "caption": "x"}, {"id": "2", "path": "officer.jpg", "caption": "y"}]
    assert [sample.image for sample in SampleFile(write("image.jsonl", rows))] == ["cat.jpg", None]
    with pytest.raises(InputError, match="no 'caption'"):
        ids_of(write("text.jsonl", [{"id": "1", "caption": "x"}, {"id": "4", "text": "y"}]))


def test_the_column_that_is_named_is_the_one_that_is_taken(write):
    path = write("d.csv", "key,Key,caption\nk1,K1,a dog\nk2,K2,a cat\n")
    assert ids_of(path, columns={"id": "Key"}) == ["K1", "K2"]
    with pytest.raises(InputError, match="several columns are called"):
        ids_of(path, columns={"id": "KEY"})
    rows = [{"id": "1", "caption": "WRONG", "ALT": "right", "caption (not used)": "q"}]
    with pytest.raises(InputError, match="same meaning"):
        ids_of(write("both.jsonl", rows), columns={"caption": "ALT"})
    rows = [{"id": "1", "ALT": "right", "caption": "no"}, {"id": "2", "caption": "no"}]
    with pytest.raises(InputError, match="no 'caption'"):
        ids_of(write("one.jsonl", rows), columns={"caption": "ALT"})


def _tar(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("a.txt", b"a dog"), ("a.caption", b"another")], "two captions"),
        ([("a.txt", b"a"), ("a.txt", b"b")], "two captions"),
        ([("a.txt", b"a"), ("a.json", b'{"lang": "en"}'), ("a.json", b'{"lang": "de"}')], "two JSON files"),
    ],
)
def test_a_sample_has_one_caption_and_one_json(tmp_path, members, words):
    _tar(tmp_path / "a.tar", members)
    with pytest.raises(InputError, match=words):
        list(SampleFile(tmp_path / "a.tar"))


def test_a_header_of_a_tar_is_a_name_and_not_more(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x" * (3 << 20)}) as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    with pytest.raises(InputError, match="header of"):
        list(SampleFile(tmp_path / "a.tar"))


def test_two_columns_of_one_language_in_a_row_are_an_error(write):
    rows = [{"id": "1", "de": "ein Hund", "en": "a dog"}, {"id": "2", "Deutsch": "eine Katze", "English": "a cat"}]
    assert [sample.lang for sample in SampleFile(write("two.jsonl", rows))] == ["de", "en", "de", "en"]
    with pytest.raises(InputError, match="in one language"):
        ids_of(write("three.jsonl", [*rows, {"id": "3", "de": "eins", "Deutsch": "zwei", "en": "one"}]))


def test_columns_of_languages_have_a_limit(write):
    rows = [{"id": str(n), f"caption{'-' * n}-de": "ein Hund", f"caption{'-' * n}-en": "a dog"} for n in range(600)]
    with pytest.raises(InputError, match="columns of languages"):
        ids_of(write("many.jsonl", rows))


def test_types_of_arrow_that_share_memory_are_not_read(tmp_path):
    arrow = need("pyarrow")
    shared = arrow.DictionaryArray.from_arrays(arrow.array([0, 0], arrow.int32()), ["x"])
    arrays = {
        "inside": arrow.ListArray.from_arrays([0, 1, 2], shared),
        "struct": arrow.StructArray.from_arrays([shared], ["a"]),
        "view": arrow.array(["x", "x"], arrow.string_view()),
        "run": arrow.RunEndEncodedArray.from_arrays([2], ["x"]),
    }
    for name, array in arrays.items():
        table = arrow.table({"id": ["1", "2"], "caption": ["a dog", "a cat"], "more": array})
        with arrow.ipc.new_stream(str(tmp_path / f"{name}.arrow"), table.schema) as stream:
            stream.write_table(table)
        with pytest.raises(InputError, match="which is not read"):
            list(SampleFile(tmp_path / f"{name}.arrow"))


def test_lists_inside_of_structs_are_counted(tmp_path, monkeypatch):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    monkeypatch.setattr("caplens.data.formats.parquet._MOST_VALUES", 1000)
    rows = [{"id": "1", "caption": "a dog", "more": {"list": list(range(2000))}}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="2,000 values"):
        list(SampleFile(tmp_path / "a.parquet"))


def test_every_part_of_a_workbook_is_checked_and_headers_are_read_at_once(tmp_path):
    openpyxl = need("openpyxl")
    import zipfile

    book = openpyxl.Workbook()
    book.active.append(["id", "caption", *(f"c{n}" for n in range(16_000))])
    book.active.append(["1", "a dog"])
    book.save(tmp_path / "a.xlsx")
    start = time.monotonic()
    assert ids_of(tmp_path / "a.xlsx") == ["1"]
    assert time.monotonic() - start < 10
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
        new.writestr("xl/other.dat", b"<c/>" * (spreadsheet._MOST_ELEMENTS + 1))
    with pytest.raises(InputError, match="more elements"):
        ids_of(tmp_path / "b.xlsx")


def test_a_photo_whose_caption_lies_beside_it_is_not_written_over(tmp_path, caplens):
    photo = tmp_path / "cat.jpg"
    photo.write_bytes(b"a photo")
    (tmp_path / "cat.txt").write_text("a cat", encoding="utf-8")
    score = ("score", tmp_path, "-m", "length", "-f", "json", "-o", photo)
    for command in (("convert", tmp_path, photo, "--to", "jsonl"), score):
        assert caplens(*command).status == 2
        assert photo.read_bytes() == b"a photo"


def test_what_is_read_as_windows_1252_is_a_warning_and_cut_utf_8_is_not(tmp_path, caplog):
    (tmp_path / "ru.csv").write_bytes("id,caption\n1,собака\n".encode("cp1251"))
    as_utf8(tmp_path / "ru.csv")
    assert any(record.levelname == "WARNING" and "Windows-1252" in record.message for record in caplog.records)
    (tmp_path / "cut.csv").write_bytes(b"id,caption\n1,caf\xc3")
    with pytest.raises(InputError, match="not UTF-8"):
        list(SampleFile(tmp_path / "cut.csv"))


@pytest.mark.parametrize("lang", [[True], [[]], [{"a": 1}], ["en", "en"]])
def test_languages_of_a_result_are_texts(tmp_path, lang):
    content = package.score(["a dog"], ["length"], resamples=0).to_dict() | {"lang": lang}
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="not a result"):
        load_results(tmp_path / "a.json")

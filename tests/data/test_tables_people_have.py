"""Tables as office programs, photographers and data sets have them: Excel, other encodings, other names, folders, tars."""

import csv
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from extras import need
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from caplens.data import Sample, SampleFile, write_samples
from caplens.errors import InputError

PHOTO = Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8))


def _jpeg(**settings) -> bytes:
    out = io.BytesIO()
    PHOTO.save(out, "JPEG", **settings)
    return out.getvalue()


def _workbook(path, rows, *, title="Sheet", before=()):
    openpyxl = need("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    for row in [*before, *rows]:
        sheet.append(row)
    book.save(path)
    return path


def _read(path, **settings):
    return [(sample.id, sample.caption, sample.lang) for sample in SampleFile(path, **settings)]


@pytest.mark.parametrize(
    "header",
    [
        ["Dateiname", "Alt-Text", "Sprache"],
        ["file_name", "alt_text", "Language"],
        ["Bild", "Beschreibung", "LANG"],
        ["fichier", "légende", "langue"],
        ["archivo", "descripción", "idioma"],
        ["الصورة", "النص البديل", "اللغة"],
        ["文件名", "描述", "语言"],
    ],
)
def test_columns_are_known_by_their_usual_names_in_many_languages(tmp_path, header):
    path = tmp_path / "table.csv"
    path.write_text(";".join(header) + "\n1.jpg;Eine Katze schläft.;Deutsch\n", encoding="utf-8")
    assert _read(path) == [("1.jpg", "Eine Katze schläft.", "de")]


def test_it_says_which_column_was_taken_for_what(tmp_path, caplens):
    path = tmp_path / "table.csv"
    path.write_text("Datei;Alt-Text\n1.jpg;Eine Katze\n", encoding="utf-8")
    said = caplens("score", path, "-m", "length", "--lang", "de")
    assert "the column 'Alt-Text' is read as the caption" in said.err
    assert "the column 'Datei' is read as the image" in said.err
    assert "known by their images" in said.err


def test_columns_can_be_named(tmp_path, caplens):
    path = tmp_path / "table.csv"
    path.write_text("ALT,Text,nr\na cat,page one,1\n", encoding="utf-8")
    said = caplens("score", path, "-m", "length")
    assert said.status == 2
    assert "could each be the caption" in said.err
    assert "--columns caption=ALT" in said.err
    assert _read(path, columns={"caption": "ALT"}) == [("1", "a cat", None)]
    wrong = caplens("score", path, "-m", "length", "--columns", "caption=Words")
    assert wrong.status == 2
    assert "there is no column 'Words' (columns: 'ALT', 'Text', 'nr')" in wrong.err
    assert "write FIELD=COLUMN" in caplens("score", path, "-m", "length", "--columns", "words").err


def test_a_table_with_a_column_for_each_language_has_a_row_for_each(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("image,Deutsch,العربية,en\n1.jpg,Katze,قطة,cat\n2.jpg,Hund,,dog\n", encoding="utf-8")
    assert _read(path) == [
        ("1.jpg", "Katze", "de"), ("1.jpg", "قطة", "ar"), ("1.jpg", "cat", "en"),
        ("2.jpg", "Hund", "de"), ("2.jpg", "", "ar"), ("2.jpg", "dog", "en"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-16", "UTF-16"), ("utf-16-le", None), ("cp1252", "Windows-1252"), ("utf-8-sig", None)]
)
def test_encodings_of_office_programs_are_read(tmp_path, encoding, said, caplog):
    path = tmp_path / "table.csv"
    text = "id;caption\n1;Ein Mädchen läuft über die Straße – „schnell“\n"
    path.write_bytes(text.encode(encoding))
    if encoding == "utf-16-le":
        # Without its mark nobody can tell: an error, and no wrong text.
        with pytest.raises(InputError):
            _read(path)
        return
    with caplog.at_level("INFO", logger="caplens"):
        assert _read(path) == [("1", "Ein Mädchen läuft über die Straße – „schnell“", None)]
    assert said is None or f"read as {said}" in caplog.text


def test_damaged_utf8_is_not_taken_for_another_encoding(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("id,caption\n1,Mädchen\n2,M".encode() + b"\xe4dchen\n")
    with pytest.raises(InputError, match="UTF-8"):
        _read(path)


def test_a_workbook_is_read_below_its_titles(tmp_path):
    rows = [["Inv.-Nr", "Datei", "Alt-Text", "Sprache"], [7, "a.jpg", "Eine Katze", "Deutsch"], [8.0, "b.jpg", "قطة", "ar"]]
    path = _workbook(tmp_path / "alt.xlsx", rows, before=[["Alternativtexte der Sammlung"], []])
    samples = list(SampleFile(path))
    assert [(s.id, s.image, s.caption, s.lang) for s in samples] == [
        ("a.jpg", "a.jpg", "Eine Katze", "de"),
        ("b.jpg", "b.jpg", "قطة", "ar"),
    ]
    assert [s.meta["Inv.-Nr"] for s in samples] == ["7", "8"]


def test_a_workbook_gives_back_what_was_written(tmp_path):
    openpyxl = need("openpyxl")
    samples = [
        Sample("1", "=SUM(A1)", image="1.jpg", references=("a", "b"), lang="de", ratings=(), meta={"x": 1}),
        Sample("2", "-5 degrees\nand snow", lang="en"),
    ]
    write_samples(samples, tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    # No cell is a formula that a spreadsheet would run.
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    again = list(SampleFile(tmp_path / "out.xlsx"))
    assert [(s.id, s.caption, s.image, s.references, s.lang) for s in again] == [
        (s.id, s.caption, s.image, s.references, s.lang) for s in samples
    ]


def test_a_damaged_workbook_an_old_one_and_a_zip_are_one_sentence_each(tmp_path):
    path = _workbook(tmp_path / "good.xlsx", [["id", "caption"], [1, "a cat"]])
    damaged = tmp_path / "damaged.xlsx"
    damaged.write_bytes(path.read_bytes()[:-200])
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("a.txt", "text")
    _workbook(tmp_path / "other.xlsx", [["year", "amount"], [2024, 5]])
    for name, words in {
        "damaged.xlsx": "", "old.xls": "old Excel file", "photos.zip": "no Excel workbook", "other.xlsx": "no sheet has columns",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=words):
            list(SampleFile(tmp_path / name))


def test_a_small_workbook_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPLENS_MAX_LINE_MB", "1")
    path = _workbook(tmp_path / "bomb.xlsx", [["id", "caption"], [1, "a cat"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/zeros.bin", bytes(20 << 20))
    with pytest.raises(InputError, match="CAPLENS_MAX_LINE_MB"):
        list(SampleFile(path))


def _tar(path, members):
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


def test_a_tar_of_webdataset_is_rows_with_their_images(tmp_path):
    photo = _jpeg()
    path = _tar(
        tmp_path / "shard.tar",
        {"0/a.jpg": photo, "0/a.txt": b"a cat\n", "0/a.json": b'{"lang": "en", "similarity": 0.3}', "0/b.jpg": photo,
         "0/b.txt": b"ein Hund"},
    )  # fmt: skip
    samples = list(SampleFile(path))
    assert [(s.id, s.caption, s.lang) for s in samples] == [("0/a", "a cat", "en"), ("0/b", "ein Hund", None)]
    assert samples[0].meta == {"similarity": 0.3}
    for sample in samples:
        assert Path(sample.image).read_bytes() == photo


def test_members_of_a_tar_never_leave_the_scratch_folder(tmp_path):
    path = _tar(tmp_path / "evil.tar", {"../../evil.jpg": _jpeg(), "../../evil.txt": b"a cat"})
    (sample,) = SampleFile(path)
    assert "caplens" in sample.image
    assert not (tmp_path.parent / "evil.jpg").exists()
    link = tarfile.TarInfo("x.txt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "link.tar", "w") as archive:
        archive.addfile(link)
    with pytest.raises(InputError, match="no samples"):
        list(SampleFile(tmp_path / "link.tar"))


def test_photos_with_captions_beside_or_inside_them(tmp_path):
    (tmp_path / "a.jpg").write_bytes(_jpeg())
    (tmp_path / "a.txt").write_text("beside the photo\n", encoding="utf-8")
    exif = Image.Exif()
    exif[270] = "in EXIF"
    (tmp_path / "b.jpg").write_bytes(_jpeg(exif=exif))
    xmp = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:description><rdf:Alt><rdf:li xml:lang="x-default">in XMP &amp; more'
        "</rdf:li></rdf:Alt></dc:description></rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    (tmp_path / "c.jpg").write_bytes(_with_segment(_jpeg(), 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp.encode()))
    (tmp_path / "d.jpg").write_bytes(_with_iptc(_jpeg(), "in IPTC: Mädchen".encode()))
    (tmp_path / "deep").mkdir()
    PHOTO.save(tmp_path / "deep" / "e.png")
    samples = list(SampleFile(tmp_path))
    assert [(s.id, s.caption) for s in samples] == [
        ("a.jpg", "beside the photo"), ("b.jpg", "in EXIF"), ("c.jpg", "in XMP & more"), ("d.jpg", "in IPTC: Mädchen"),
        ("deep/e.png", ""),
    ]  # fmt: skip


def _with_iptc(jpeg: bytes, caption: bytes) -> bytes:
    record = b"\x1c\x02\x78" + len(caption).to_bytes(2, "big") + caption
    resource = (
        b"8BIM" + (0x0404).to_bytes(2, "big") + b"\0\0" + len(record).to_bytes(4, "big") + record + b"\0" * (len(record) % 2)
    )
    return _with_segment(jpeg, 0xED, b"Photoshop 3.0\0" + resource)


def _with_segment(jpeg: bytes, marker: int, content: bytes) -> bytes:
    return jpeg[:2] + bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2, "big") + content + jpeg[2:]


def test_damaged_descriptions_of_photos_are_no_captions(tmp_path):
    photo = bytearray(_jpeg(exif=b"Exif\0\0" + bytes(ImageFileDirectory_v2().tobytes())))
    for cut in (3, 10, 25, len(photo) // 2):
        (tmp_path / f"{cut}.jpg").write_bytes(bytes(photo[:cut]))
    assert all(sample.caption == "" for sample in SampleFile(tmp_path))


def test_an_image_folder_of_hugging_face_has_a_table(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.jpg").write_bytes(_jpeg())
    rows = [{"file_name": "train/1.jpg", "text": "a cat"}]
    (tmp_path / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (sample,) = SampleFile(tmp_path)
    assert (sample.caption, sample.image) == ("a cat", str(tmp_path / "train" / "1.jpg"))
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "../../secret.jpg", "text": "a cat"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="outside the folder"):
        list(SampleFile(tmp_path))


def test_data_sets_of_hugging_face_on_disk_are_read(tmp_path):
    datasets = need("datasets")
    rows = {"image": [PHOTO, PHOTO], "text": ["a cat", "a dog"]}
    features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "arrow")
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "part.parquet")
    for path in (tmp_path / "arrow", tmp_path / "part.parquet"):
        samples = list(SampleFile(path))
        assert [sample.caption for sample in samples] == ["a cat", "a dog"]
        with Image.open(samples[1].image) as image:
            assert np.array_equal(np.asarray(image), np.asarray(PHOTO))


def test_a_damaged_arrow_file_is_one_sentence(tmp_path):
    datasets = need("datasets")
    datasets.Dataset.from_dict({"text": ["a cat"] * 50, "id": list(range(50))}).save_to_disk(tmp_path / "arrow")
    (path,) = (tmp_path / "arrow").glob("*.arrow")
    content = path.read_bytes()
    for cut in (40, len(content) // 2):
        path.write_bytes(content[:cut])
        with pytest.raises(InputError, match="not a readable Arrow file"):
            list(SampleFile(path))


def test_old_columns_called_text_stay_meta_beside_a_caption(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "caption", "text"], ["1", "a cat", "page one"]])
    (sample,) = SampleFile(path)
    assert (sample.caption, sample.meta) == ("a cat", {"text": "page one"})

"""What an eleventh attacker found: settings that unpickle, damaged headers of stores, sheets that repeat, studies in a race."""

import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import time
import zipfile
from contextlib import closing

import numpy as np
import pytest
from extras import need
from PIL import Image

from caplens.data import SampleFile
from caplens.embed.images import UnreadableError, decode
from caplens.embed.store import Store
from caplens.errors import InputError
from caplens.text.normalize import fold

PAGE = 16384


@pytest.fixture
def vectors(tmp_path):
    """A store of 2,000 vectors, as bytes."""
    store = Store(tmp_path / "made")
    model = store.model_vectors("m", "ab" * 16)
    keys = [b"t" + number.to_bytes(16, "big") for number in range(2000)]
    model.put(keys, np.ones((len(keys), 64), dtype=np.float32), [False] * len(keys))
    model.close()
    return (tmp_path / "made" / f"{'ab' * 16}.vectors").read_bytes(), keys


def opened_damaged(folder, content, keys):
    """How many vectors a store with this content still has, by `verify` and in ordinary use."""
    counts = []
    for name in ("verified", "used"):
        path = folder / name / f"{'ab' * 16}.vectors"
        path.parent.mkdir()
        path.write_bytes(content)
        store = Store(path.parent)
        if name == "verified":
            counts.append(sum(count for _, count, _ in store.verify()))
        else:
            counts.append(int(store.model_vectors("m", "ab" * 16).get(keys).present.sum()))
    return counts


@pytest.mark.parametrize("place", [0, 16, 17, 18, 19, 21, 22, 23, 28, 29, 30, 31, 47, 59])
def test_a_flipped_bit_in_the_header_of_a_store_costs_nothing(tmp_path, vectors, place):
    content, keys = vectors
    damaged = bytearray(content)
    damaged[place] ^= 1
    verified, used = opened_damaged(tmp_path, bytes(damaged), keys)
    # What does not begin like a store is nobody's business but its owner's: it is not touched by `verify`.
    assert verified in ((0,) if place in (0, 47) else range(1900, 2001))
    assert used >= 1900


def test_a_store_that_was_cut_keeps_what_is_there(tmp_path, vectors):
    content, keys = vectors
    assert min(opened_damaged(tmp_path, content[:-PAGE], keys)) > 1800


def test_a_store_of_which_nothing_can_be_read_is_kept_aside(tmp_path, vectors):
    content, keys = vectors
    rubbish = content[:100] + os.urandom(len(content) - 100)
    assert max(opened_damaged(tmp_path, rubbish, keys)) == 0
    for name in ("verified", "used"):
        (kept,) = (tmp_path / name).glob("*.damaged")
        assert kept.read_bytes() == rubbish


def test_a_view_in_the_place_of_a_table_is_not_asked(tmp_path):
    path = tmp_path / f"{'ab' * 16}.vectors"
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)"
    endless = f"{numbers} SELECT x AS key, x AS vector, 0 AS cut, 0 AS checksum FROM c"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE about (model, fingerprint, used)")
        connection.execute(f"CREATE VIEW vectors AS {endless}")
    assert [about.unopened for about in Store(tmp_path).models()] == ["it is not a store of caplens"]


@pytest.mark.parametrize("setting", [{"model_args": {"weights_only": False}}, {"model_kwargs": {"local_files_only": False}}])
def test_settings_of_a_model_do_not_say_how_it_is_opened(tmp_path, setting):
    need("sentence_transformers")
    from caplens.backbones.registry import load_backbone

    (tmp_path / "modules.json").write_text('[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}]')
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, **setting}))
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="how the model's files are opened"):
        load_backbone(f"st:{tmp_path},image=caplens-mini").encode_texts(["a dog"])
    (tmp_path / "sentence_bert_config.json").write_text("{}")
    os.mkfifo(tmp_path / "README.md")
    with pytest.raises(InputError, match="a device or a pipe"):
        load_backbone(f"st:{tmp_path},image=caplens-mini").encode_texts(["a dog"])


def test_nothing_is_unpickled_while_a_model_is_opened(tmp_path):
    torch = need("torch")
    from caplens.backbones.pretrained import code_of_models

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    torch.save(Hostile(), tmp_path / "weights.bin")
    with code_of_models(False), pytest.raises(Exception, match=r"[Ww]eights.only"):
        torch.load(tmp_path / "weights.bin", weights_only=False)
    assert not (tmp_path / "run").exists()
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def workbook(path, rows):
    """A workbook whose sheet has these rows of XML."""
    need("openpyxl").Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>{}</sheetData></worksheet>"
    parts["xl/worksheets/sheet1.xml"] = sheet.format("".join(rows)).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def row(number, *cells):
    texts = "".join(f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>' for place, text in cells)
    return f'<row r="{number}">{texts}</row>'


HEADER = row(1, ("A1", "id"), ("B1", "caption"))


@pytest.mark.parametrize(
    "rows",
    [
        [row(2, ("A2", "1"), ("B2", "a dog")), row(2, ("A2", "2"), ("B2", "a cat"))],
        [row(3, ("A3", "1"), ("B3", "a dog")), row(2, ("A2", "2"), ("B2", "a cat"))],
        [row(2, ("A2", "1"), ("B2", "a dog"), ("B2", "a cat"))],
    ],
)
def test_a_sheet_whose_cells_come_twice_or_too_late_is_an_error(tmp_path, rows):
    with pytest.raises(InputError, match="comes twice, or too late"):
        list(SampleFile(workbook(tmp_path / "a.xlsx", [HEADER, *rows])))
    good = [row(number, (f"A{number}", number), (f"B{number}", f"a dog {number}")) for number in range(2, 60)]
    assert len(list(SampleFile(workbook(tmp_path / "b.xlsx", [HEADER, *good])))) == 58


def test_a_cell_of_hundreds_of_megabytes_is_refused_before_it_is_read(tmp_path):
    path = workbook(tmp_path / "a.xlsx", [HEADER, row(2, ("A2", "1"), ("B2", "a" * (5 << 20)))])
    with pytest.raises(InputError, match="a text of more than"):
        list(SampleFile(path))


def test_a_jpeg_of_many_exif_segments_is_refused_at_once(tmp_path):
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG")
    content = b"Exif\0\0" + b"a" * 40
    segment = b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content
    path = tmp_path / "many.jpg"
    path.write_bytes(out.getvalue()[:2] + segment * 100_000 + out.getvalue()[2:])
    start = time.monotonic()
    with pytest.raises(UnreadableError, match="segments of EXIF"):
        decode(str(path))
    assert time.monotonic() - start < 5


def test_marks_on_one_letter_take_no_square_of_their_number():
    start = time.monotonic()
    assert len(fold("a" + "\u0301\u0316" * 200_000, "de")) < 1000
    assert time.monotonic() - start < 5
    assert fold("Cafe\u0301", "fr") == "café"


def test_two_studies_of_one_name_are_an_error_of_the_second(tmp_path):
    need("sqlalchemy")
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    rows = [{"id": str(number), "caption": "a dog", "image": "a.png", "lang": "en"} for number in range(3000)]
    for count in (3000, 2999):
        lines = "".join(json.dumps(one) + "\n" for one in rows[:count])
        (tmp_path / f"{count}.jsonl").write_text(lines, encoding="utf-8")
    create = [sys.executable, "-m", "caplens", "study", "create", "-q", "-o", "study ?.db", "--images", "."]
    started = [
        subprocess.Popen([*create, f"{count}.jsonl"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) for count in (3000, 2999)
    ]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert sorted(status for _, status in ended) == [0, 2]
    assert "exists already" in next(said for said, status in ended if status)
    place = tmp_path / "study ?.db"
    with closing(sqlite3.connect(place)) as connection:
        made = 3000 if ended[0][1] == 0 else 2999
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (made,)
    assert place.stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_foreign_database_is_not_changed(tmp_path, caplens):
    need("sqlalchemy")
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE study (x)")
    before = path.read_bytes()
    said = caplens("study", "status", path)
    assert (said.status, "this is not a study" in said.err) == (2, True)
    assert path.read_bytes() == before


def test_other_references_in_one_file_than_in_another_are_said(write, caplens):
    texts = {"a.jsonl": ["a dog is running", "a dog runs"], "b.jsonl": ["something else", "nothing alike"]}
    files = [
        write(name, "".join(json.dumps({"id": str(n), "caption": f"a dog {n}", "references": refs}) + "\n" for n in range(3)))
        for name, refs in texts.items()
    ]
    assert "3 captions have other references in one file" in caplens("compare", *files, "-m", "cider").err


def test_a_column_of_the_name_of_scores_keeps_its_values(tmp_path, write, caplens):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    columns = {"id": ["1", "2"], "caption": ["a dog", "a cat"], "references": [["a dog"], ["a cat"]]}
    both = {**columns, "bleu1": ["old", "old"], "bleu1 (input)": ["older", "older"]}
    parquet.write_table(arrow.table(both), tmp_path / "c.parquet")
    assert caplens("filter", tmp_path / "c.parquet", tmp_path / "out.parquet", "-m", "bleu1", "--above", "-1").status == 0
    written = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert written["bleu1"] == pytest.approx([1.0, 1.0])
    assert {"older", "old"} == {value for name, values in written.items() if "input" in name for value in values}
    rows = [{"id": "1", "caption": "a dog", "references": ["a dog"], "bleu1": "old"}]
    captions = write("c.jsonl", "".join(json.dumps(one) + "\n" for one in rows))
    assert caplens("filter", captions, tmp_path / "out.jsonl", "-m", "bleu1", "--above", "-1").status == 0
    (kept,) = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    flat = {**kept, **kept.get("meta", {})}
    assert (flat["bleu1"], flat["bleu1 (input)"]) == (pytest.approx(1.0), "old")
    result = caplens("score", tmp_path / "c.parquet", "-m", "bleu1", "--keep-columns", "bleu1,bleu1 (input)", "-f", "jsonl")
    assert {"old", "older"} <= set(json.loads(result.out.splitlines()[0]).values())


def test_two_captions_or_tables_for_one_thing_are_an_error(tmp_path, caplens):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "cat.jpg")
    (folder / "cat.txt").write_text("a cat")
    (folder / "cat.caption").write_text("a dog")
    assert "have different captions" in caplens("check", folder).err
    (folder / "cat.caption").write_text("a cat")
    assert caplens("check", folder).status == 0
    (folder / "metadata.csv").write_text("file_name,caption\ncat.jpg,a cat\n")
    (folder / "metadata.jsonl").write_text('{"file_name": "cat.jpg", "caption": "a dog"}\n')
    assert "could both be the table" in caplens("check", folder).err


def test_places_and_regions_are_given_once(tmp_path, write, caplens):
    places = write("p.jsonl", '{"id": "1", "Latitude": 52, "latitude": -33, "longitude": 13}\n')
    assert "two columns 'latitude'" in caplens("select-images", places, tmp_path / "o.csv", "--langs", "de").err
    regions = tmp_path / "r.tsv"
    regions.write_text("lang\tlevel\tname\tsouth\tsouth\twest\tnorth\teast\nde\tarea\tx\t1\t2\t3\t4\t5\n")
    good = write("q.jsonl", '{"id": "1", "latitude": 52, "longitude": 13}\n')
    said = caplens("select-images", good, tmp_path / "o.csv", "--langs", "de", "--per-language", "1", "--regions", regions)
    assert "each once" in said.err
    regions.write_text(f"lang\tlevel\tname\tsouth\twest\tnorth\teast\nde\tarea\t{'x' * 200_000}\t1\t1\t60\t60\n")
    said = caplens("select-images", good, tmp_path / "o.csv", "--langs", "de", "--per-language", "1", "--regions", regions)
    assert said.status == 0, said.err
    lines = ["id,image,latitude,longitude", "1,a.jpg,52,13", "2,a.jpg,52,13", "3,b.jpg,48,2"]
    again = write("again.csv", "\n".join(lines) + "\n")
    assert caplens("select-images", again, tmp_path / "o.jsonl", "--langs", "de,fr", "--per-language", "1").status == 0
    chosen = [json.loads(line)["image"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert sorted(chosen) == ["a.jpg", "b.jpg"]

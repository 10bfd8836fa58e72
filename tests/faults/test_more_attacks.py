"""What a third attacker found: inputs that were overwritten, folders of others, runs that were mistaken for others."""

import json
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from extras import need
from faults.harness import EXAMPLES, plain_environment

import caplens
from caplens.data import References, Sample, SampleFile, read_references
from caplens.embed import Store
from caplens.errors import InputError
from caplens.metrics.external import ExternalScores


def _run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "caplens", *map(str, arguments)],
        cwd=folder,
        env=plain_environment(),
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


def _write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_nothing_of_the_current_folder_is_run(tmp_path, monkeypatch):
    need("scipy")
    from scipy.io import savemat

    from caplens.benchmarks.matlab import read_matlab

    savemat(tmp_path / "a.mat", {"x": np.array([1.0])})
    (tmp_path / "json.py").write_text("open('run', 'w').write('')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert read_matlab(tmp_path / "a.mat", ["x"]) == [[[1.0]]]
    assert not (tmp_path / "run").exists()


def test_the_processes_that_decode_run_nothing_of_the_current_folder(tmp_path, monkeypatch):
    from caplens.backbones.transform import ImageTransform
    from caplens.embed.decode_pool import DecoderPool
    from caplens.embed.images import image_key

    (tmp_path / "json.py").write_text("open('run', 'w').write('')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    photo = EXAMPLES / "cat.jpg"
    (pixels,) = DecoderPool(1, 1, ImageTransform((8, 8), "squash"))([(image_key(photo), photo)])
    assert pixels.shape == (8, 8, 3)
    assert not (tmp_path / "run").exists()


def test_store_verify_leaves_the_databases_of_others(tmp_path):
    with sqlite3.connect(tmp_path / "notes.vectors") as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    (tmp_path / f"{'a' * 32}.vectors").write_bytes((tmp_path / "notes.vectors").read_bytes())
    for name in ("300.vectors", ".vectors"):
        (tmp_path / name).write_text("the 0.1 0.2\n", encoding="utf-8")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert [(entries, removed) for _, entries, removed in Store(tmp_path).verify()] == [(0, 0)] * len(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["agreement --scores", "agreement --df", "robustness --df", "bench"])
def test_an_input_is_never_written(tmp_path, command):
    rated = [
        {"id": str(number), "caption": f"a dog {number}", "references": [f"a dog {number} runs"], "ratings": [number]}
        for number in range(3)
    ]
    _write(tmp_path / "rated.jsonl", *rated)
    _write(tmp_path / "mine.jsonl", *({"id": row["id"], "score": 0.5} for row in rated))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "polaris_test.csv").write_text("cand,refs,human_score,imgid\na,\"['b']\",0.5,1\n", encoding="utf-8")
    assert _run(tmp_path, "count-df", "rated.jsonl", "df.json")[0] == 0
    arguments, target = {
        "agreement --scores": (["agreement", "rated.jsonl", "--scores", "mine.jsonl", "-m", "length"], "mine.jsonl"),
        "agreement --df": (["agreement", "rated.jsonl", "--df", "df.json", "-m", "cider"], "df.json"),
        "robustness --df": (["robustness", "rated.jsonl", "--df", "df.json", "-m", "cider"], "df.json"),
        "bench": (["bench", "polaris", "--data", "data", "-m", "length"], "data/polaris_test.csv"),
    }[command]
    before = (tmp_path / target).read_bytes()
    status, message = _run(tmp_path, *arguments, "-o", target)
    assert status == 2, message
    assert "named twice" in message
    assert (tmp_path / target).read_bytes() == before


def test_a_folder_of_somebody_else_is_no_folder_of_a_run(tmp_path):
    need("torch")
    from caplens.training.loop.run import RUN, claim_folder

    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match="holds model, which would be replaced"):
        claim_folder(tmp_path, {"seed": 0})
    assert not (tmp_path / RUN).exists()
    (tmp_path / "model").rmdir()
    claim_folder(tmp_path, {"seed": 0}, writes=False)
    assert not (tmp_path / RUN).exists()
    claim_folder(tmp_path, {"seed": 0})
    (tmp_path / "model").mkdir()
    claim_folder(tmp_path, {"seed": 0})


def test_a_run_is_known_by_its_photos(tmp_path):
    need("torch")
    from caplens.training.recipes.pairs import Photos, RatedCaptions

    names = ["a/1.jpg", "b/1.jpg", "c/1.jpg"]
    for name, size in zip(names, (3, 3, 4), strict=True):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x" * size)

    def of(kind, name):
        (tmp_path / "other.jpg").write_bytes(b"y")
        images = [tmp_path / name, tmp_path / "other.jpg"]
        samples = [Sample(str(place), "a dog", image=image, ratings=(place,)) for place, image in enumerate(images)]
        return kind(samples).fingerprint

    for kind in (Photos, RatedCaptions.of):
        same, moved, other = (of(kind, name) for name in names)
        assert same == moved != other


def test_names_of_columns_mean_the_same_in_every_format(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    row = {"ID": "1", "Caption": "a dog", "References": "the dog", "Lang": "ja", "x": "y"}
    _write(tmp_path / "a.jsonl", row)
    (tmp_path / "a.json").write_text(json.dumps([row]), encoding="utf-8")
    (tmp_path / "a.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n", encoding="utf-8")
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    samples = [list(SampleFile(tmp_path / f"a.{suffix}")) for suffix in ("jsonl", "json", "csv", "parquet")]
    assert samples[0] == [Sample("1", "a dog", ("the dog",), lang="ja", meta={"x": "y"})]
    assert all(other == samples[0] for other in samples)
    _write(tmp_path / "b.jsonl", {"id": "1", "caption": "a dog", "Caption": "a cat"})
    with pytest.raises(InputError, match="'Caption' and 'caption' mean the same"):
        list(SampleFile(tmp_path / "b.jsonl"))


def test_a_whole_float_is_an_image_id(tmp_path):
    _write(
        tmp_path / "a.jsonl",
        {"id": "1", "image_id": 2.0, "caption": "a dog"},
        {"id": "2", "image_id": float("nan"), "caption": ""},
    )
    (tmp_path / "a.jsonl").write_text((tmp_path / "a.jsonl").read_text().replace("NaN", "null"), encoding="utf-8")
    assert [sample.image_id for sample in SampleFile(tmp_path / "a.jsonl")] == ["2", None]
    _write(tmp_path / "b.jsonl", {"id": "1", "image_id": 2.5, "caption": "a dog"})
    with pytest.raises(InputError, match=r"'image_id' must be text or a whole number, not 2\.5"):
        list(SampleFile(tmp_path / "b.jsonl"))


def test_references_of_one_id_name_one_image(tmp_path):
    _write(tmp_path / "r.jsonl", {"id": "1", "image": "a.jpg", "caption": "x"}, {"id": "1", "image": "b.jpg", "caption": "y"})
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


def test_a_text_that_many_rows_of_parquet_share_is_read_once(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    shared = arrow.DictionaryArray.from_arrays(arrow.array([0, None, 0], arrow.int32()), ["a dog"])
    table = arrow.table({"id": ["1", "2", "3"], "caption": ["x", "y", None], "x": shared})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    first, second, third = SampleFile(tmp_path / "a.parquet")
    assert first.meta["x"] is third.meta["x"]
    assert (second.meta, third.caption) == ({}, "")
    lists = arrow.table({"id": ["1"], "caption": ["x"], "references": [["a"] * 5_000_001]})
    parquet.write_table(lists, tmp_path / "b.parquet")
    with pytest.raises(InputError, match="lists of 5,000,001 values"):
        list(SampleFile(tmp_path / "b.parquet"))


def test_a_row_of_a_table_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPLENS_MAX_LINE_MB", "1")
    lines = "x" * 1000 + "\n"
    (tmp_path / "a.csv").write_text('id,caption,x\n1,a,"' + lines * 2000 + '"\n', encoding="utf-8")
    with pytest.raises(InputError, match="CAPLENS_MAX_LINE_MB"):
        list(SampleFile(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text(
        "id,caption\n" + "".join(f"{number},{'y' * 1000}\n" for number in range(2000)), encoding="utf-8"
    )
    assert len(list(SampleFile(tmp_path / "b.csv"))) == 2000


def test_columns_that_are_kept_have_a_limit_and_names_of_their_own(tmp_path):
    rows = [{"id": str(number), "caption": "a", f"k{number}": 1} for number in range(1001)]
    with pytest.raises(InputError, match="more than 1,000 different columns"):
        caplens.score(_write(tmp_path / "a.jsonl", *rows), ["length"], keep_columns=True, resamples=0)
    path = _write(tmp_path / "b.jsonl", {"id": "1", "caption": "a dog", "length": 99, "error": "E", "doubt": "D"})
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
    path = _write(tmp_path / "two.jsonl", *rows)
    status, message = _run(tmp_path, "agreement", path, "-m", "length", "-o", "two.json", "--resamples", "5")
    assert status == 0, message
    (document,) = read_documents(tmp_path / "two.json")
    cases = find_cases(document, InputPaths())
    shown = {(case.sample.id, case.sample.caption, case.scores["length"], round(case.human, 2)) for case in cases}
    assert shown == {(row["id"], row["caption"], float(len(row["caption"].split())), row["ratings"][0]) for row in rows}


def test_a_result_cannot_make_the_report_wait_for_a_stream(tmp_path):
    path = _write(tmp_path / "a.jsonl", {"id": "1", "caption": "a dog"})
    assert _run(tmp_path, "score", path, "-m", "length", "--resamples", "0", "-o", "a.json")[0] == 0
    document = json.loads((tmp_path / "a.json").read_text())
    document["inputs"] = {"captions": "/dev/stdin"}
    (tmp_path / "b.json").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "caplens", "report", "b.json", "-o", "b.html"], cwd=tmp_path, env=plain_environment(),
        stdin=subprocess.PIPE, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "there is no such file or folder any more" in (tmp_path / "b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("key", "value"), [("image", {"size": 64}), ("text", {"max_tokens": 60_000})])
def test_a_model_whose_files_do_not_fit_gets_a_sentence(tmp_path, key, value):
    from caplens.backbones import load_backbone
    from caplens.backbones.mini import FILES, mini_folder

    folder = tmp_path / "model"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((mini_folder("caplens-mini") / name).read_bytes())
    settings = json.loads((folder / "model.json").read_text())
    settings[key] |= value
    (folder / "model.json").write_text(json.dumps(settings), encoding="utf-8")
    backbone = load_backbone(str(folder))
    with pytest.raises(InputError, match="onnxruntime cannot run this model"):
        backbone.encode_texts(["dog " * 2000])
        backbone.encode_pixels(np.zeros((1, 64, 64, 3), dtype=np.uint8))


def test_a_model_is_not_its_own_image_model(tmp_path):
    (tmp_path / "caplens.json").write_text(json.dumps({"family": "mclip", "image": "."}), encoding="utf-8")
    from caplens.backbones.load_options import LoadOptions
    from caplens.backbones.registry import _load_image_model

    with pytest.raises(InputError, match="takes its image tower from another model"):
        _load_image_model(str(tmp_path), "m", LoadOptions())


def test_one_score_is_not_that_of_two_captions():
    samples = [Sample("1", "a dog", lang="en-US"), Sample("1", "a hound", lang="en-GB")]
    with pytest.raises(InputError, match="several languages or of several systems"):
        caplens.score(samples, [ExternalScores("mine", {("1", "en", None): 0.9})], resamples=0)

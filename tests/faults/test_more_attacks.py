"""What a third attacker found: inputs that were overwritten, folders of others, runs that were mistaken for others."""

import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest
from extras import need
from faults.harness import EXAMPLES, plain_environment
from PIL import Image

import caplens
from caplens.data import References, Sample, SampleFile, read_references, with_images, write_samples
from caplens.data.inputs import read_captions
from caplens.data.replacing import replacing, replacing_folder
from caplens.data.temporary import new_scratch_folder
from caplens.embed import Store
from caplens.embed.memory import MemoryBudget
from caplens.errors import CaplensError, InputError
from caplens.metrics.document_frequency import DocumentFrequency
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


def test_a_list_without_end_in_parquet_is_refused_and_a_long_text_is_shared(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    parquet.write_table(arrow.table({"id": ["1", "2"], "caption": ["a" * 2000] * 2}), tmp_path / "a.parquet")
    first, second = SampleFile(tmp_path / "a.parquet")
    assert first.caption is second.caption
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


def test_a_model_is_not_its_own_image_model(tmp_path, monkeypatch):
    from caplens.backbones import load_backbone, mclip, registry

    (tmp_path / "caplens.json").write_text(json.dumps({"family": "mclip", "image": "."}), encoding="utf-8")
    monkeypatch.setattr(registry, "family_loader", lambda _: lambda name, _, load: load(name.image_model(mclip._IMAGE_TOWERS)))
    with pytest.raises(InputError, match="its image model leads back to itself"):
        load_backbone(str(tmp_path))


def test_one_score_is_not_that_of_two_captions():
    samples = [Sample("1", "a dog", lang="en-US"), Sample("1", "a hound", lang="en-GB")]
    with pytest.raises(InputError, match="several languages or of several systems"):
        caplens.score(samples, [ExternalScores("mine", {("1", "en", None): 0.9})], resamples=0)


def test_a_file_that_only_its_owner_reads_stays_so(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o600)
    with replacing(path) as temporary:
        temporary.write_text("[]", encoding="utf-8")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("[]", 0o600)


def test_the_file_on_standard_input_is_not_written(tmp_path):
    path = _write(tmp_path / "mine.jsonl", {"id": "1", "caption": "a dog"})
    before = path.read_bytes()
    command = [sys.executable, "-m", "caplens", "score", "-", "-m", "length", "--resamples", "0", "-o", "mine.jsonl"]
    with path.open("rb") as stdin:
        done = subprocess.run(command, cwd=tmp_path, env=plain_environment(), stdin=stdin, capture_output=True, text=True)
    assert (done.returncode, path.read_bytes()) == (2, before)
    assert "named twice" in done.stderr


def test_a_folder_that_is_called_previous_is_the_users(tmp_path):
    (tmp_path / "model.previous").mkdir()
    with replacing_folder(tmp_path / "model") as temporary:
        (temporary / "weights").write_text("new", encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.previous"]


def test_of_two_files_none_is_replaced_if_the_first_cannot_be(tmp_path, monkeypatch):
    for name in ("captions.json", "references.json"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    replace = os.replace

    def fail(source, target):
        if str(target).endswith("captions.json"):
            raise OSError(1, "not allowed")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="cannot be written"):
        write_samples([Sample("1", "a", ("b",))], tmp_path / "captions.json", "coco", tmp_path / "references.json")
    assert {path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"old"}


def test_an_address_is_not_a_path(tmp_path, monkeypatch):
    from caplens.embed.images import UnreadableError, decode

    (tmp_path / "x:").mkdir()
    (tmp_path / "cat.jpg").write_bytes((EXAMPLES / "cat.jpg").read_bytes())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableError, match="is an address"):
        decode("x://../cat.jpg")


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


def test_a_vector_of_another_length_is_missing(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "f" * 32)
    keys = [bytes([number]) * 16 for number in range(3)]
    vectors.put(keys[:2], np.ones((2, 4), dtype=np.float32), [False, False])
    vectors.put(keys[2:], np.ones((1, 3), dtype=np.float32), [False])
    stored = vectors.get(keys)
    assert stored.present.tolist() == [True, True, False]
    assert stored.vectors.shape == (3, 4)


def test_a_null_character_does_not_end_a_text():
    need("MeCab")
    from caplens.text.tokenizer import get_tokenizer

    tokenizer = get_tokenizer("ja-mecab", "ja")
    assert tokenizer("猫がいる\0猫がいる") == tokenizer("猫がいる") * 2


def test_an_id_is_one_document_however_its_references_name_their_language(tmp_path):
    path = _write(
        tmp_path / "r.jsonl",
        {"id": "1", "caption": "a dog"},
        {"id": "1", "lang": "en", "caption": "a dog"},
        {"id": "2", "lang": "en", "caption": "a cat"},
    )
    assert DocumentFrequency.load(path, lang="en").documents == 2


def test_a_model_is_known_by_where_its_files_are(tmp_path):
    from caplens.backbones.hub import fingerprint

    def model(name, first, second):
        files = [tmp_path / name / folder / "model.safetensors" for folder in ("2_Dense", "3_Dense")]
        for file, content in zip(files, (first, second), strict=True):
            file.parent.mkdir(parents=True)
            file.write_text(content, encoding="utf-8")
        return fingerprint(files)

    assert model("a", "x", "y") == model("moved", "x", "y") != model("b", "y", "x")


@pytest.mark.parametrize("text", ["a." * 60_000 + "b=1\n", "a=1\n" * 2000])
def test_a_recipe_is_short(tmp_path, text):
    need("torch")
    from caplens.training.recipes.prmcs import PrmcsRecipe
    from caplens.training.recipes.recipe import read_recipe

    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="this is no recipe"):
        read_recipe(PrmcsRecipe, tmp_path / "r.toml")
    with pytest.raises(InputError, match="this is not a TOML value"):
        read_recipe(PrmcsRecipe, None, ["train.steps=3\nx=1"])


def test_ratings_by_several_criteria_are_not_mixed(tmp_path):
    rows = [
        {"id": str(number), "caption": "a " * number, "ratings": [{"value": number, "criterion": criterion}]}
        for number, criterion in enumerate(["fluency", "adequacy", "fluency"], 1)
    ]
    path = _write(tmp_path / "r.jsonl", *rows)
    with pytest.raises(InputError, match=r"several criteria \(adequacy, fluency\)"):
        caplens.agreement(path, ["length"], resamples=5)
    assert caplens.agreement(path, ["length"], criterion="fluency", resamples=5).rows == 2


def test_a_rater_is_compared_with_the_mean_of_the_others():
    from caplens.benchmarks.own_ratings import _against_others
    from caplens.stats import get_coefficient

    rng = np.random.default_rng(0)
    table = np.where(rng.random((5, 40)) < 0.6, rng.integers(1, 6, (5, 40)).astype(float), np.nan)
    for rater in range(5):
        others = np.delete(table, rater, axis=0)
        both = ~np.isnan(table[rater]) & (~np.isnan(others)).any(axis=0)
        expected = get_coefficient("pearson")(table[rater, both], np.nanmean(others[:, both], axis=0))
        assert _against_others(table, rater, get_coefficient("pearson")) == pytest.approx(expected)


def test_too_many_pairs_are_left_out_and_said(tmp_path, monkeypatch):
    from caplens.benchmarks import own_ratings

    monkeypatch.setattr(own_ratings, "_MOST_PAIRS", 2)
    rows = [{"id": str(number), "image": "x.jpg", "caption": "a " * number, "ratings": [number]} for number in range(1, 4)]
    result = caplens.agreement(_write(tmp_path / "r.jsonl", *rows), ["length"], resamples=5)
    assert not result.pairwise
    assert any("pairwise accuracy was left out" in warning for warning in result.warnings)


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
        read_quality(_write(tmp_path / "q.jsonl", row, {**row, "quality": 0}))


def test_photos_of_xvnli_are_found_by_their_exact_name_first(tmp_path):
    from caplens.benchmarks import get_benchmark

    for name in ("123.jpg", "123_other.jpg", "123_z.txt"):
        (tmp_path / name).write_bytes(b"")
    (sample,) = get_benchmark("xvnli").located([Sample("1", "a", image="123.jpg")], tmp_path)
    assert str(sample.image).endswith("123.jpg")
    (tmp_path / "123.jpg").rename(tmp_path / "123_third.jpg")
    with pytest.raises(InputError, match=r"could be 123_other\.jpg or 123_third\.jpg"):
        get_benchmark("xvnli").located([Sample("1", "a", image="123.jpg")], tmp_path)


def test_of_two_runs_that_begin_together_one_gets_the_folder(tmp_path, monkeypatch):
    need("torch")
    from caplens.training.loop import run

    link = os.link

    def late(source, target):
        (tmp_path / run.RUN).write_text(json.dumps({"seed": 2}), encoding="utf-8")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InputError, match="another run has just begun here"):
        run.claim_folder(tmp_path, {"seed": 1})
    assert json.loads((tmp_path / run.RUN).read_text()) == {"seed": 2}


def test_photos_to_train_on_are_files_with_one_name(tmp_path):
    need("torch")
    from caplens.training.mini.collection import photo_versions, read_photos

    photos = tmp_path / "flickr8k" / "images"
    photos.mkdir(parents=True)
    (photos / "1.jpg").write_bytes((EXAMPLES / "cat.jpg").read_bytes())
    before = photo_versions(tmp_path, ["1.jpg"])
    assert read_photos(tmp_path, ["1.jpg"], 8).shape == (1, 3, 8, 8)
    (photos / "1.png").write_bytes(b"")
    assert read_photos(tmp_path, ["1.jpg"], 8).shape == (1, 3, 8, 8)
    with pytest.raises(InputError, match=r"the photo 1\.webp could be"):
        read_photos(tmp_path, ["1.webp"], 8)
    (photos / "1.jpg").write_bytes((EXAMPLES / "rocket.jpg").read_bytes())
    assert photo_versions(tmp_path, ["1.jpg"]) != before
    (photos / "1.jpg").unlink()
    (photos / "1.png").unlink()
    os.mkfifo(photos / "1.jpg")
    with pytest.raises(InputError, match="pipe or a device"):
        read_photos(tmp_path, ["1.jpg"], 8)


@pytest.mark.parametrize("what", ["large", "encrypted"])
def test_an_archive_of_photos_does_not_fill_the_memory(tmp_path, monkeypatch, what):
    need("torch")
    from caplens.training.mini import collection

    monkeypatch.setattr(collection, "_LARGEST_PHOTO", 1000)
    (tmp_path / "flickr8k").mkdir()
    path = tmp_path / "flickr8k" / "images.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.jpg", b"\0" * 100_000)
    if what == "encrypted":
        content = bytearray(path.read_bytes())
        content[content.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(content)
    with pytest.raises(InputError, match="larger than" if what == "large" else "encrypted"):
        collection.read_photos(tmp_path, ["1.jpg"], 8)


@pytest.mark.parametrize("damage", ["cut", "lacking"])
def test_a_damaged_teacher_gets_a_sentence(tmp_path, damage):
    need("torch")
    from caplens.training.mini.networks import Teacher

    path = tmp_path / "teacher.npz"
    np.savez(path, **{"00.weight": np.zeros((1, 1, 1, 1), dtype=np.int8)})
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match="the teacher's weights cannot be read"):
        Teacher(path)


def test_the_report_says_that_rated_captions_have_changed(tmp_path):
    rows = [{"id": str(number), "caption": "a " * number, "ratings": [number]} for number in range(1, 4)]
    path = _write(tmp_path / "r.jsonl", *rows)
    assert _run(tmp_path, "agreement", path, "-m", "length", "--resamples", "5", "-o", "r.json")[0] == 0
    for changed in (False, True):
        if changed:
            _write(path, *[{**row, "caption": "quite another caption"} for row in rows[:1]], *rows[1:])
        assert _run(tmp_path, "report", "r.json", "-o", "r.html")[0] == 0
        assert ("have changed since they were scored" in (tmp_path / "r.html").read_text(encoding="utf-8")) == changed


def test_the_tile_of_a_tiff_counts(tmp_path, monkeypatch):
    from caplens.embed.images import UnreadableError, decode

    path = tmp_path / "tile.tif"
    tile = 4096
    data = zlib.compress(b"\0" * tile * tile)
    tags = [(256, 10), (257, 10), (258, 8), (259, 8), (262, 1), (277, 1), (322, tile), (323, tile), (324, 8), (325, len(data))]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    header = struct.pack("<2sHI", b"II", 42, 8 + len(data))
    path.write_bytes(header + data + struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0))
    monkeypatch.setattr("caplens.embed.images.budget", MemoryBudget(16 << 20))
    with pytest.raises(UnreadableError, match="MB of memory to decode"):
        decode(path)


def test_a_jpeg_of_many_scans_is_refused():
    from caplens.embed.images import UnreadableError, decode

    out = io.BytesIO()
    Image.new("L", (64, 64)).save(out, "JPEG", progressive=True)
    content = out.getvalue()
    assert decode(content).size == (64, 64)
    last = content.rindex(b"\xff\xda")
    with pytest.raises(UnreadableError, match="scans"):
        decode(content[:-2] + content[last:-2] * 200 + content[-2:])


def test_names_are_no_html_in_markdown():
    from caplens.report import markdown
    from caplens.results.table import Table

    shown = markdown(Table(["system"], [["<img src=x>"], ["b\\|c"], ["[a](b)"]]))
    assert "| <img" not in shown
    assert "b\\\\\\|c" in shown
    assert "[a](b)" not in shown


def test_a_scratch_folder_is_private():
    folder = new_scratch_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()


def test_decoding_where_the_disk_is_full_blames_the_disk(monkeypatch):
    from caplens.backbones.transform import ImageTransform
    from caplens.embed.decode_pool import DecoderPool

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CaplensError, match="there is no room for decoded images"):
        DecoderPool(1, 1, ImageTransform((8, 8), "squash"))

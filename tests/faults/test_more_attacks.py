"""What a third attacker found: inputs that were overwritten, code and databases of others, models that do not fit."""

import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from extras import need
from faults.harness import EXAMPLES, plain_environment, run_caplens, write_rows

from caplens.data import Sample, write_samples
from caplens.data.replacing import replacing, replacing_folder
from caplens.data.temporary import new_scratch_folder
from caplens.embed import Store
from caplens.errors import InputError


def test_nothing_of_the_current_folder_isrun_caplens(tmp_path, monkeypatch):
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
    write_rows(tmp_path / "rated.jsonl", *rated)
    write_rows(tmp_path / "mine.jsonl", *({"id": row["id"], "score": 0.5} for row in rated))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "polaris_test.csv").write_text("cand,refs,human_score,imgid\na,\"['b']\",0.5,1\n", encoding="utf-8")
    assert run_caplens(tmp_path, "count-df", "rated.jsonl", "df.json")[0] == 0
    arguments, target = {
        "agreement --scores": (["agreement", "rated.jsonl", "--scores", "mine.jsonl", "-m", "length"], "mine.jsonl"),
        "agreement --df": (["agreement", "rated.jsonl", "--df", "df.json", "-m", "cider"], "df.json"),
        "robustness --df": (["robustness", "rated.jsonl", "--df", "df.json", "-m", "cider"], "df.json"),
        "bench": (["bench", "polaris", "--data", "data", "-m", "length"], "data/polaris_test.csv"),
    }[command]
    before = (tmp_path / target).read_bytes()
    status, message = run_caplens(tmp_path, *arguments, "-o", target)
    assert status == 2, message
    assert "named twice" in message
    assert (tmp_path / target).read_bytes() == before


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


def test_a_file_that_only_its_owner_reads_stays_so(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o600)
    with replacing(path) as temporary:
        temporary.write_text("[]", encoding="utf-8")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("[]", 0o600)


def test_the_file_on_standard_input_is_not_written(tmp_path):
    path = write_rows(tmp_path / "mine.jsonl", {"id": "1", "caption": "a dog"})
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


def test_a_vector_of_another_length_is_missing(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "f" * 32)
    keys = [bytes([number]) * 16 for number in range(3)]
    vectors.put(keys[:2], np.ones((2, 4), dtype=np.float32), [False, False])
    vectors.put(keys[2:], np.ones((1, 3), dtype=np.float32), [False])
    stored = vectors.get(keys)
    assert stored.present.tolist() == [True, True, False]
    assert stored.vectors.shape == (3, 4)


def test_a_model_is_known_by_where_its_files_are(tmp_path):
    from caplens.backbones.hub import fingerprint

    def model(name, first, second):
        files = [tmp_path / name / folder / "model.safetensors" for folder in ("2_Dense", "3_Dense")]
        for file, content in zip(files, (first, second), strict=True):
            file.parent.mkdir(parents=True)
            file.write_text(content, encoding="utf-8")
        return fingerprint(files)

    assert model("a", "x", "y") == model("moved", "x", "y") != model("b", "y", "x")


def test_a_scratch_folder_is_private():
    folder = new_scratch_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()


def test_a_file_gets_the_users_rights_whoever_writes_it(tmp_path):
    with replacing(tmp_path / "weights") as temporary:
        temporary.unlink()
        temporary.write_text("x", encoding="utf-8")
        temporary.chmod(0o600)
    (tmp_path / "plain").write_text("x", encoding="utf-8")
    assert (tmp_path / "weights").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_perturbing_does_not_replace_a_column(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", {"id": "1", "caption": "a dog runs", "original": "mine"})
    status, message = run_caplens(tmp_path, "perturb", path, "b.jsonl")
    assert (status, (tmp_path / "b.jsonl").exists()) == (2, False)
    assert "it has a column 'original'" in message

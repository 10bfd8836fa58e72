"""What a second attacker found: bombs in text, stores and models that others hold, and joins that lost a column."""

import json
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest
from extras import need
from faults.harness import EXAMPLES, GOOD, plain_environment

import caplens
from caplens.data import Sample, SampleFile, read_references, replacing, temporary
from caplens.data.replacing import replacing_folder
from caplens.data.temporary import temporary_file
from caplens.embed import Store
from caplens.errors import InputError

GIGABYTE = 1 << 30


def _peak(folder, *arguments, program=("-m", "caplens")):
    """The status, message and peak memory of a command."""
    outer = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, *sys.argv[1:]], capture_output=True)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(done.stderr.decode())
"""
    command = [sys.executable, "-c", outer, *program, *arguments]
    done = subprocess.run(command, cwd=folder, env=plain_environment(), capture_output=True, text=True, timeout=60)
    first, _, message = done.stdout.partition("\n")
    status, kilobytes = map(int, first.split())
    return status, message, kilobytes * 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start", "unit", "end"),
    [
        ("lists.json.xz", b"[[]", b",[]", b"]"),
        ("long row.jsonl.xz", b'{"id": "1", "caption": "a", "x": [[]', b",[]" * 3, b"]}"),
        ("row.jsonl.xz", b'{"id": "1", "caption": "a", "x": [[]', b",[]", b"]}"),
        ("text.jsonl.xz", '{"id": "1", "caption": "a", "x": "😀'.encode(), b"aaa", b'"}'),
        ("blank.jsonl.xz", b'{"id": "1", "caption": "a"}\n', b"\n\n\n", b""),
    ],
)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path, name, start, unit, end):
    with lzma.open(tmp_path / name, "wb", preset=1) as out:
        out.write(start)
        for _ in range(100 if name.startswith("long") else 300):
            out.write(unit * ((1 << 20) // len(unit)))
        out.write(end)
    status, message, peak = _peak(tmp_path, "score", name, "-m", "length", "--resamples", "0")
    assert status == 2, message
    assert "CAPLENS_MAX_LINE_MB" in message or "times its size" in message
    assert peak < GIGABYTE


def test_a_row_group_of_parquet_has_a_limit_and_a_column_a_name_of_its_own(tmp_path, monkeypatch):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    monkeypatch.setenv("CAPLENS_MAX_LINE_MB", "1")
    columns = {"id": ["1", "2"], "caption": ["a", "b"], "x": ["z" * (40 << 20), "y"]}
    parquet.write_table(arrow.table(columns), tmp_path / "large.parquet", compression="zstd")
    with pytest.raises(InputError, match="row group 1: this group of rows is longer than 32 MB"):
        list(SampleFile(tmp_path / "large.parquet"))
    arrays = [arrow.array(["1"]), arrow.array(["a dog"]), arrow.array(["other"])]
    parquet.write_table(arrow.Table.from_arrays(arrays, names=["id", "caption", "caption"]), tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="the column 'caption' appears twice"):
        list(SampleFile(tmp_path / "twice.parquet"))


def test_a_long_text_that_many_rows_of_parquet_share_does_not_fill_the_memory(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    captions = arrow.DictionaryArray.from_arrays(arrow.array([0] * 2000, arrow.int32()), ["a dog " * 700_000])
    table = arrow.table({"id": [str(number) for number in range(2000)], "caption": captions})
    parquet.write_table(table, tmp_path / "shared.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "shared.parquet").stat().st_size < 1 << 20
    read = "import sys; from caplens.data import SampleFile; next(iter(SampleFile(sys.argv[1])))"
    status, message, peak = _peak(tmp_path, "shared.parquet", program=("-c", read))
    assert status == 0, message
    assert peak < GIGABYTE


def test_the_time_to_read_grows_with_the_size(tmp_path):
    """Many references of one id, and many columns: both were quadratic, and took minutes."""
    (tmp_path / "references.jsonl").write_text('{"id": "1", "caption": "a cat"}\n' * 200_000, encoding="utf-8")
    assert len(next(iter(read_references(tmp_path / "references.jsonl")))[2]) == 200_000
    names = ",".join(f"c{number}" for number in range(100_000))
    (tmp_path / "wide.csv").write_text(f"id,caption,{names}\n1,a{',' * 100_000}\n", encoding="utf-8")
    assert len(list(SampleFile(tmp_path / "wide.csv"))) == 1


def test_verify_keeps_what_is_not_a_store_and_what_is_being_made(tmp_path, caplens):
    Store(tmp_path).model_vectors("model", "f" * 64).put([b"a"], np.ones((1, 4), dtype=np.float32), [False])
    (tmp_path / "glove.vectors").write_text("the 0.1 0.2", encoding="utf-8")
    (tmp_path / f"{'a' * 32}.vectors").touch()
    os.mkfifo(tmp_path / "pipe.vectors")
    (tmp_path / "link.vectors").symlink_to("/nonexistent")
    caplens("store", "verify", "--store", tmp_path)
    caplens("store", "prune", "--older-than", 1, "--store", tmp_path)
    assert (tmp_path / "glove.vectors").read_text(encoding="utf-8") == "the 0.1 0.2"
    assert (tmp_path / f"{'a' * 32}.vectors").exists()
    assert "model" in caplens("store", "info", "--store", tmp_path).out


def test_a_store_is_never_seen_half_made(tmp_path):
    program = (
        "import sys, numpy as np; from caplens.embed import Store\n"
        "for number in range(60):\n"
        "    Store(sys.argv[1]).model_vectors('m', f'{number:064x}').put([b'a'], np.ones((1, 4), dtype=np.float32), [False])\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program.replace("{number:064x}", "{number:032x}"), str(tmp_path)])
    while writer.poll() is None:
        list(Store(tmp_path).verify())
    assert writer.returncode == 0
    assert len(Store(tmp_path).models()) == 60
    assert all(about.vectors == 1 for about in Store(tmp_path).models())


def test_scores_are_joined_by_language_where_they_name_one(tmp_path):
    rated = [("1", "en", 5), ("1", "de", 1), ("2", "en", 2), ("2", "de", 4), ("3", "en", 3)]
    samples = [Sample(identifier, "a dog", lang=lang, ratings=(rating,)) for identifier, lang, rating in rated]
    scores = [
        {"id": "1", "lang": "en", "score": 0.9},
        {"id": "2", "lang": "en", "score": 0.2},
        {"id": "3", "lang": "en", "score": 0.5},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in scores), encoding="utf-8")
    from caplens.metrics.external import ExternalScores

    result = caplens.score(samples, [ExternalScores.read(path)], resamples=0)
    assert np.array_equal(result["mine"].values, [0.9, np.nan, 0.2, np.nan, 0.5], equal_nan=True)
    path.write_text("".join(json.dumps({"id": row["id"], "score": row["score"]}) + "\n" for row in scores), encoding="utf-8")
    with pytest.raises(InputError, match="in several languages"):
        caplens.score(samples, [ExternalScores.read(path)], resamples=0)


def test_annotations_keep_their_language_and_images_their_names(tmp_path):
    path = tmp_path / "annotations.json"
    texts = [(1, "ein Hund", "de"), (1, "a dog", "en")]
    annotations = [{"image_id": image, "caption": text, "lang": lang} for image, text, lang in texts]
    path.write_text(json.dumps({"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": annotations}), encoding="utf-8")
    assert read_references(path).get(Sample("1", "x", lang="en")) == ("a dog",)
    twice = {"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 1, "file_name": "b.jpg"}], "annotations": annotations}
    path.write_text(json.dumps(twice), encoding="utf-8")
    with pytest.raises(InputError, match="has another file name before"):
        read_references(path)
    path.write_text(json.dumps({"annotations": [{"image_id": True, "caption": "x"}]}), encoding="utf-8")
    with pytest.raises(InputError, match="needs an 'image_id'"):
        read_references(path)


def test_tables_of_benchmarks_are_read_strictly(tmp_path):
    for content, words in (
        ('imgid,score,refs,mt\nx.jpg,0.9,"[]",a dog, running\n', "the number of cells"),
        ("imgid,mt,refs,score,score\nx.jpg,a dog,[],0.9,0.1\n", "a column appears twice"),
    ):
        (tmp_path / "polaris_test.csv").write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            caplens.bench("polaris", tmp_path, ["length"], resamples=1)


def test_a_folder_is_put_back_where_two_cannot_be_exchanged(tmp_path, monkeypatch):
    """On systems without an exchange there is a moment with neither folder."""
    monkeypatch.setattr(replacing.ctypes, "CDLL", lambda *_, **__: object())
    target = tmp_path / "model"
    for content in ("old", "new"):
        with replacing_folder(target) as folder:
            (folder / "weights").write_text(content, encoding="utf-8")
        assert (target / "weights").read_text(encoding="utf-8") == content
    target.rename(tmp_path / ".model.caplens-previous")
    with pytest.raises(KeyboardInterrupt), replacing_folder(target):
        raise KeyboardInterrupt
    assert (target / "weights").read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_swept_is_left(tmp_path, monkeypatch):
    mine = temporary_file(tmp_path, "out.csv")
    dead = mine.with_name(mine.name.replace(f"-{os.getpid()}-", "-999999999-"))
    dead.touch()
    temporary._sweep.cache_clear()
    monkeypatch.setattr("os.unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError(1, "not permitted")))
    assert temporary_file(tmp_path, "out.csv").exists()


def test_a_damaged_entry_of_the_cache_of_hashes_is_computed_again(tmp_path, monkeypatch):
    from caplens.backbones.hub import file_hash

    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weights").write_bytes(b"abc")
    right = file_hash(tmp_path / "weights")
    for content in (b"", b"\xff\xfe", b"00"):
        for path in (tmp_path / "cache" / "hashes").iterdir():
            path.write_bytes(content)
        assert file_hash(tmp_path / "weights") == right


@pytest.mark.slow
def test_damaged_weights_of_a_run_do_not_replace_its_model(tmp_path, caplens):
    need("torch")
    need("onnx")
    train = ("train", "prmcs", GOOD, "--images", EXAMPLES, "--device", "cpu", "--set", "train.steps=2", "--set", "train.photos=4")
    assert caplens(*train, "--out", tmp_path / "run").status == 0
    model = (tmp_path / "run" / "model" / "text.onnx").read_bytes()
    weights = bytearray((tmp_path / "run" / "tune.safetensors").read_bytes())
    weights[len(weights) // 2] ^= 1
    (tmp_path / "run" / "tune.safetensors").write_bytes(bytes(weights))
    said = caplens(*train, "--out", tmp_path / "run")
    assert (said.status, "these weights are damaged" in said.err) == (2, True)
    assert (tmp_path / "run" / "model" / "text.onnx").read_bytes() == model


def test_augment_does_not_mix_two_captioners(tmp_path):
    need("torch")
    from caplens.training.loop.run import claim_folder

    claim_folder(tmp_path, {"captioner": "a", "size": 8})
    claim_folder(tmp_path, {"captioner": "a", "size": 8})
    with pytest.raises(InputError, match="another recipe, seed or data"):
        claim_folder(tmp_path, {"captioner": "b", "size": 8})


def test_values_of_wrong_types_are_input_errors():
    for references in ({"1": None}, {"1": 5}, {"1": [5]}, {"1": b"ab"}):
        with pytest.raises(InputError, match="are texts"):
            caplens.score({"1": "a"}, ["bleu1"], references=references)
    for fields in (
        {"id": 1},
        {"id": None},
        {"id": "1", "references": None},
        {"id": "1", "references": 5},
        {"id": "1", "ratings": 5},
    ):
        with pytest.raises(InputError):
            Sample(**{"caption": "a", **fields})
    for options in (
        {"lang": 5},
        {"weight": "x"},
        {"device": 5},
        {"workers": "x"},
        {"store": 5},
        {"seed": -1},
        {"resamples": 1.5},
    ):
        with pytest.raises(InputError):
            caplens.score(["a dog"], ["length"], **options)
    for image in (np.zeros((0, 0, 3)), np.full((2, 2, 3), "x")):
        with pytest.raises(InputError):
            caplens.score(["a dog"], ["clipscore"], images=[image])
    with pytest.raises(InputError, match="must return numbers"):
        caplens.score(["a dog"], [lambda caption: 10**400])

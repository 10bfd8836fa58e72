"""Vectors as Parquet: what comes out of one store goes into another to the last bit, and nothing else does."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

arrow, parquet = need("pyarrow"), need("pyarrow.parquet")

from caplens.embed.store import Store
from caplens.embed.vector_shards import export_vectors, import_vectors
from caplens.errors import InputError

FINGERPRINT = "0123456789abcdef" * 2


def filled(folder, seed=0, count=300):
    """A store with vectors and matrices, and its keys."""
    rng, store = np.random.default_rng(seed), Store(folder)
    vectors = store.model_vectors("m", FINGERPRINT)
    keys = [b"t" + rng.bytes(16) for _ in range(count)]
    vectors.put(keys, rng.normal(size=(count, 8)).astype(np.float32), (rng.random(count) < 0.3).tolist())
    matrices = {b"v" + rng.bytes(16): rng.normal(size=(int(rng.integers(1, 5)), 8)).astype(np.float32) for _ in range(20)}
    vectors.put_matrices(matrices)
    return store, keys, matrices, vectors


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.integers(1, 400))
def test_a_store_is_the_same_after_it_was_carried(tmp_path_factory, seed, count):
    folder = tmp_path_factory.mktemp("carried")
    store, keys, matrices, vectors = filled(folder / "a", seed, count)
    assert export_vectors(store, store.models()[0], folder / "out") == count + 20
    (taken,) = import_vectors(folder / "out", Store(folder / "b"))
    assert (taken.model, taken.taken, taken.damaged) == ("m", count + 20, 0)
    other = Store(folder / "b").model_vectors("m", FINGERPRINT)
    for one, two in zip(vectors.get(keys), other.get(keys), strict=True):
        np.testing.assert_array_equal(one, two)
    for key, matrix in other.get_matrices(list(matrices)).items():
        np.testing.assert_array_equal(matrix, matrices[key])
    assert import_vectors(folder / "out", Store(folder / "b"))[0].taken == 0


def test_the_commands_carry_scores(tmp_path, caplens):
    examples = Path(str(files("caplens").joinpath("examples")))
    score = ("score", examples / "good.jsonl", "--images", examples, "-m", "clipscore", "--json", "-q")
    first = json.loads(caplens(*score, "--store", tmp_path / "a").out)
    assert caplens("store", "export", tmp_path / "out", "--store", tmp_path / "a").status == 0
    said = caplens("store", "import", tmp_path / "out", "--store", tmp_path / "b", "--json")
    assert json.loads(said.out)["imported"][0]["taken"] == 50
    assert json.loads(caplens(*score, "--store", tmp_path / "b").out)["metrics"] == first["metrics"]
    other = caplens("store", "export", tmp_path / "x", "--store", tmp_path / "a", "--model", "other-model")
    assert "no vectors of 'other-model'" in other.err
    assert "there are no vectors" in caplens("store", "import", tmp_path, "--store", tmp_path / "c").err


def test_what_is_damaged_or_foreign_is_not_taken(tmp_path):
    store, keys, _, _ = filled(tmp_path / "a")
    export_vectors(store, store.models()[0], tmp_path / "out")
    path = tmp_path / "out" / FINGERPRINT / "0.parquet"
    table = parquet.read_table(path)
    numbers = [[float("nan")] * 8 if place == 0 else values for place, values in enumerate(table["numbers"].to_pylist())]
    damaged = table.set_column(2, "numbers", arrow.array(numbers, arrow.list_(arrow.float32())))
    parquet.write_table(damaged, path)
    (taken,) = import_vectors(tmp_path / "out", Store(tmp_path / "b"))
    assert taken.damaged == 1
    assert taken.taken == len(keys) + 20 - 1
    for name, content in (("0.parquet", b"PAR1 rubbish"), ("1.parquet", b"")):
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / name).write_bytes(content)
        with pytest.raises(InputError, match="no vectors of caplens"):
            import_vectors(tmp_path / "out", Store(tmp_path / "c"))
    parquet.write_table(arrow.table({"key": [1]}), tmp_path / "out" / "1.parquet")
    with pytest.raises(InputError, match="no vectors of caplens"):
        import_vectors(tmp_path / "out", Store(tmp_path / "c"))


def test_a_flipped_bit_never_becomes_a_vector(tmp_path):
    store, keys, _, vectors = filled(tmp_path / "a")
    export_vectors(store, store.models()[0], tmp_path / "out")
    before = vectors.get(keys).vectors
    paths, rng = sorted((tmp_path / "out").glob("*/*.parquet")), np.random.default_rng(0)
    for number in range(60):
        path = paths[number % len(paths)]
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        folder = tmp_path / f"flipped-{number}"
        folder.mkdir()
        (folder / path.name).write_bytes(content)
        try:
            import_vectors(folder, Store(tmp_path / f"b-{number}"))
        except InputError:
            continue
        stored = Store(tmp_path / f"b-{number}").model_vectors("m", FINGERPRINT).get(keys)
        if stored.present.any():
            np.testing.assert_array_equal(stored.vectors[stored.present], before[stored.present])


def test_a_store_cannot_name_a_folder_outside_of_the_target(tmp_path):
    store, *_ = filled(tmp_path / "a")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "thesis.txt").write_text("precious", encoding="utf-8")
    for fingerprint in ("../victim", "", "."):
        with pytest.raises(InputError, match="its fingerprint is none"):
            export_vectors(store, store.models()[0]._replace(fingerprint=fingerprint), tmp_path / "out")
    assert (tmp_path / "victim" / "thesis.txt").read_text(encoding="utf-8") == "precious"

"""The store: what was written is there, whoever wrote it and whatever happened to the file since."""

import multiprocessing
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import keys_of, vectors_of, write_vectors

from caplens.embed import Store
from caplens.errors import CaplensError, InputError


@given(st.permutations(range(12)), st.integers(0, 12))
@settings(max_examples=20, deadline=None)
def test_what_was_put_comes_back_in_the_order_asked_for(order, stored):
    store = Store.temporary()
    kept = store.model_vectors("m", "f" * 64)
    keys, vectors = keys_of(12), vectors_of(12)
    kept.put(keys[:stored], vectors[:stored], [number % 3 == 0 for number in range(stored)])
    found = kept.get([keys[number] for number in order])
    for row, number in enumerate(order):
        assert found.present[row] == (number < stored)
        if number < stored:
            np.testing.assert_array_equal(found.vectors[row], vectors[number])
            assert found.flags[row] == (number % 3 == 0)
    assert kept.present(keys) == set(keys[:stored])
    kept.close()


def test_vectors_outlive_the_process_and_do_not_mix_between_models(tmp_path):
    Store(tmp_path).model_vectors("a", "1" * 64).put(keys_of(3), vectors_of(3), [False] * 3)
    assert Store(tmp_path).model_vectors("a", "1" * 64).get(keys_of(4)).present.tolist() == [True, True, True, False]
    assert not Store(tmp_path).model_vectors("b", "2" * 64).get(keys_of(3)).present.any()
    about = {info.model: info for info in Store(tmp_path).models()}
    assert about["a"].vectors == 3
    assert about["b"].vectors == 0
    assert about["a"].bytes > 0


def test_a_damaged_vector_counts_as_missing_and_is_removed_by_verify(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    with sqlite3.connect(vectors.path) as connection:
        (vector,) = connection.execute("SELECT vector FROM vectors WHERE key = ?", (keys_of(3)[1],)).fetchone()
        flipped = bytes([vector[0] ^ 1]) + vector[1:]
        connection.execute("UPDATE vectors SET vector = ? WHERE key = ?", (flipped, keys_of(3)[1]))
    assert vectors.get(keys_of(3)).present.tolist() == [True, False, True]
    assert vectors.verify() == (3, 1)
    assert vectors.verify() == (2, 0)


@pytest.mark.parametrize("damage", [b"this is no database" * 100, b""])
def test_a_damaged_file_begins_anew(tmp_path, damage):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(300), vectors_of(300), [False] * 300)
    vectors.close()
    vectors.path.write_bytes(damage)
    assert not vectors.get(keys_of(3)).present.any()
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    assert vectors.get(keys_of(3)).present.all()


def test_a_file_damaged_in_the_middle_begins_anew(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(3000), vectors_of(3000), [False] * 3000)
    vectors.close()
    data = bytearray(vectors.path.read_bytes())
    data[20_000:-100] = bytes(len(data) - 20_100)
    vectors.path.write_bytes(data)
    assert not vectors.get(keys_of(3000)).present.all()
    vectors.put(keys_of(3000), vectors_of(3000), [False] * 3000)
    np.testing.assert_array_equal(vectors.get(keys_of(3000)).vectors, vectors_of(3000))


def test_several_processes_share_a_store(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_vectors, args=(tmp_path, number)) for number in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    for number in range(1, 5):
        assert vectors.get(keys_of(200, 1000 * number)).present.all()
    np.testing.assert_array_equal(vectors.get(keys_of(20)).vectors, vectors_of(20))


def test_a_store_can_be_made_by_several_at_the_same_moment(tmp_path):
    together = threading.Barrier(4, timeout=30)

    def make(number):
        for store in range(40):
            vectors = Store(tmp_path).model_vectors("m", f"{store:064}"[::-1])
            together.wait()
            vectors.put(keys_of(2, 1000 * number), vectors_of(2), [False] * 2)
            vectors.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(1, 5)))
    assert len(Store(tmp_path).models()) == 40
    assert all(about.vectors == 8 for about in Store(tmp_path).models())


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(InputError, match="vectors cannot be stored there"):
        Store(tmp_path / "file" / "store").model_vectors("m", "1" * 64)


def test_a_full_disk_is_explained_and_loses_nothing(tmp_path):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    vectors._connection.execute("PRAGMA max_page_count = 6")
    with pytest.raises(CaplensError, match=r"the store of vectors cannot be used .*full"):
        vectors.put(keys_of(5000, 10), vectors_of(5000), [False] * 5000)
    assert vectors.get(keys_of(3)).present.all()


@pytest.mark.parametrize("change", ["vector = 5", "vector = 'text'", "cut = 'x'", "checksum = NULL || 'y'", "vector = x'0102'"])
def test_rows_of_the_wrong_type_count_as_missing(tmp_path, change):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    with sqlite3.connect(vectors.path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(f"UPDATE OR IGNORE vectors SET {change} WHERE rowid = 2")
    present = vectors.get(keys_of(3)).present
    assert present[[0, 2]].all()
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    np.testing.assert_array_equal(vectors.get(keys_of(3)).vectors, vectors_of(3))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_bytes_changed_at_random_never_change_a_vector(seed):
    """A file damaged anywhere gives the right vectors or none, and can be used again."""
    random = np.random.default_rng(seed)
    store = Store.temporary()
    kept = store.model_vectors("m", "1" * 64)
    keys, vectors = keys_of(40), vectors_of(40, dim=64)
    kept.put(keys, vectors, [False] * 40)
    kept.close()
    data = bytearray(kept.path.read_bytes())
    for place in random.integers(0, len(data), random.integers(1, 200)):
        data[place] = random.integers(256)
    kept.path.write_bytes(data)
    found = kept.get(keys)
    if found.present.any():
        np.testing.assert_array_equal(found.vectors[found.present], vectors[found.present])
    kept.put(keys, vectors, [False] * 40)
    kept.close()


@pytest.mark.parametrize("place", [18, 19])
def test_a_version_that_sqlite_does_not_know_is_damage(tmp_path, place):
    vectors = Store(tmp_path).model_vectors("m", "1" * 64)
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    vectors.close()
    content = bytearray(vectors.path.read_bytes())
    content[place] = 77
    vectors.path.write_bytes(content)
    vectors.put(keys_of(3), vectors_of(3), [False] * 3)
    assert vectors.get(keys_of(3)).present.all()
    vectors.close()


def test_verify_is_no_use_of_the_store_and_tells_of_damaged_files(tmp_path):
    store = Store(tmp_path)
    for name in "12":
        vectors = store.model_vectors(name, name * 64)
        vectors.put(keys_of(3), vectors_of(3), [False] * 3)
        vectors._connection.execute("UPDATE about SET used = 1000")
        vectors._connection.commit()
        vectors.close()
    assert [(count, broken) for _, count, broken in store.verify()] == [(3, 0), (3, 0)]
    assert [about.used for about in store.models()] == [1000, 1000]
    store.models()[0].path.write_bytes(b"no database" * 1000)
    # What is no database is not ours to remove.
    assert sorted((count, broken) for _, count, broken in store.verify()) == [(0, 0), (3, 0)]
    assert len(store.models()) == 2


def test_verify_never_removes_what_it_may_not_open(tmp_path, monkeypatch, caplens):
    store = Store(tmp_path)
    store.model_vectors("model", "f" * 64).put([b"a"], np.ones((1, 4), dtype=np.float32), [False])
    (path,) = tmp_path.glob("*.vectors")
    content = path.read_bytes()

    def forbidden(*_, **__):
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(sqlite3, "connect", forbidden)
    done = caplens("store", "verify", "--store", tmp_path)
    assert done.status == 3
    assert "could not be opened, and stay as they are" in done.out
    assert path.read_bytes() == content

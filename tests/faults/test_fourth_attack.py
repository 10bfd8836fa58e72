"""What a fourth attacker met: each test failed before."""

import gzip
import json
import lzma
import sqlite3
import struct

import numpy as np
import pytest
from extras import need
from PIL import Image

import caplens as package
from caplens.backbones.mini import FILES, mini_folder
from caplens.data import SampleFile, read_references
from caplens.data.files import Source
from caplens.data.rows import row_from_sample
from caplens.data.writing import write_samples
from caplens.embed.images import _needed, _scan_count
from caplens.embed.store import Store
from caplens.errors import InputError
from caplens.stats import interval_alpha, krippendorff_alpha


@pytest.fixture
def kept(tmp_path):
    """A store with fifty vectors."""
    store = Store(tmp_path / "store")
    vectors = store.model_vectors("a model", "0" * 64)
    keys = [bytes([number]) * 16 for number in range(50)]
    vectors.put(keys, np.random.default_rng(0).normal(size=(50, 512)).astype(np.float32), [False] * 50)
    vectors.close()
    return store, keys


def page_size(path):
    return struct.unpack(">H", path.read_bytes()[16:18])[0]


def test_verifying_a_damaged_store_keeps_what_is_intact_and_says_so(kept):
    store, keys = kept
    (about,) = store.models()
    size, content = page_size(about.path), about.path.read_bytes()
    reports = 0
    for page in range(1, len(content) // size):
        damaged = content[: page * size] + b"\xff" * 64 + content[page * size + 64 :]
        about.path.write_bytes(damaged)
        for suffix in ("-wal", "-shm"):
            about.path.with_name(about.path.name + suffix).unlink(missing_ok=True)
        ((_, count, broken),) = store.verify()
        reports += broken != 0
        left = store.model_vectors("a model", "0" * 64)
        present = left.get(keys).present
        left.close()
        assert int(present.sum()) == count - max(broken, 0)
    assert reports > 3


def test_a_damaged_index_costs_no_vector(kept):
    store, _ = kept
    (about,) = store.models()
    with sqlite3.connect(about.path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_matrices_1'").fetchone()
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    size, content = page_size(about.path), about.path.read_bytes()
    about.path.write_bytes(content[: (root - 1) * size] + b"\xff" * 64 + content[(root - 1) * size + 64 :])
    ((_, count, broken),) = store.verify()
    assert (count, broken) == (50, -1)
    ((_, count, broken),) = store.verify()
    assert (count, broken) == (50, 0)


def test_a_file_that_is_no_store_of_ours_stays(tmp_path):
    store = Store(tmp_path)
    text, other = tmp_path / f"{'1' * 32}.vectors", tmp_path / f"{'2' * 32}.vectors"
    text.write_text("notes", encoding="utf-8")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE about (model, fingerprint, last_used, version)")
    connection.close()
    assert all(about.unopened for about, _, _ in store.verify())
    assert text.is_file()
    assert other.is_file()


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (40, 40), "red").save(folder / "1.jpg")
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"id": "1", "image": "1.jpg", "caption": "a red wall"}\n', encoding="utf-8")
    return captions, folder


def test_no_photo_model_or_store_is_overwritten_by_the_output(photos, tmp_path, caplens):
    captions, folder = photos
    model = tmp_path / "model"
    model.mkdir()
    for name in FILES:
        (model / name).write_bytes((mini_folder("caplens-mini") / name).read_bytes())
    common = ["score", captions, "--images", folder, "-m", "clipscore", "-f", "json"]
    stores = (["--store", tmp_path / "store"], ["--no-store"])
    assert caplens(*common, *stores[0]).status == 0
    (stored,) = (tmp_path / "store").glob("*.vectors")
    for output, more in ((folder / "1.jpg", []), (model / "text.onnx", ["--model", model]), (stored, [])):
        before = output.read_bytes()
        for store in stores if output != stored else stores[:1]:
            said = caplens(*common, *more, *store, "-o", output)
            assert said.status == 2
            assert "named twice" in said.err
        # A store notes when it was used.
        assert output.read_bytes()[:16] == before[:16]
        assert output == stored or output.read_bytes() == before


def test_xz_that_asks_for_gigabytes_is_refused(tmp_path):
    rows = b'{"id": "1", "caption": "a dog"}\n' * 3
    bomb = tmp_path / "bomb.jsonl.xz"
    bomb.write_bytes(lzma.compress(rows, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]))
    with pytest.raises(InputError, match="damaged"), Source(bomb) as source:
        source.content()
    ordinary = tmp_path / "two.xz"
    ordinary.write_bytes(lzma.compress(b"first\n", preset=9) + b"\0" * 8 + lzma.compress(b"second\n"))
    with Source(ordinary) as source:
        assert [line for _, line in source.lines()] == ["first\n", "second\n"]
    ordinary.write_bytes(lzma.compress(b"first\n" * 1000)[:-20])
    with pytest.raises(InputError, match="cut short"), Source(ordinary) as source:
        list(source.lines())


def test_a_small_packed_document_that_fills_the_memory_is_refused(tmp_path):
    bomb = tmp_path / "doc.json.gz"
    bomb.write_bytes(gzip.compress(b'[{"id": "1", "caption": "' + b"x" * (20 << 20) + b'"}]'))
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        list(SampleFile(bomb))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_caption_of_the_same_id_in_both_columns_is_joined_like_the_others(tmp_path, swapped):
    references = [
        {"id": 7, "image_id": 100, "references": ["of image 100"]},
        {"id": 8, "image_id": 101, "references": ["of 101"]},
    ]
    captions = [
        {"id": 7, "image_id": 7, "caption": "a"},
        {"id": 50, "image_id": 100, "caption": "b"},
        {"id": 51, "image_id": 101, "caption": "c"},
    ]
    if swapped:
        captions = captions[::-1]
    for name, rows in (("references", references), ("captions", captions)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    joined = read_references(tmp_path / "references.jsonl").joined(SampleFile(tmp_path / "captions.jsonl"))
    samples = {sample.caption: sample.references for sample in joined}
    assert samples == {"a": (), "b": ("of image 100",), "c": ("of 101",)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": 1, "image_id": 1}, {"id": 1, "image_id": 2}),
        ({"id": 1, "image": "cat.jpg"}, {"id": 1, "image": "rocket.jpg"}),
    ],
)
def test_captions_of_different_images_are_not_compared(tmp_path, first, second):
    files = []
    for name, row in (("a", first), ("b", second)):
        files.append(tmp_path / f"{name}.jsonl")
        more = [{"id": str(number), "caption": "a dog runs", "references": ["a dog"]} for number in range(2, 5)]
        rows = [{**row, "caption": "a dog", "references": ["a dog"]}, *more]
        files[-1].write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    with pytest.raises(InputError, match="about different images"):
        package.compare({path.stem: path for path in files}, "rouge-l")


def test_names_of_coco_with_and_without_what_comes_before_are_one_image(tmp_path):
    files = []
    for name, image in (("a", "COCO_val2014_000000000042.jpg"), ("b", "photos/000000000042.png")):
        files.append(tmp_path / f"{name}.jsonl")
        rows = [{"id": str(n), "image": image, "caption": f"a dog {name}", "references": ["a dog"]} for n in range(3)]
        files[-1].write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    assert package.compare({path.stem: path for path in files}, "rouge-l")


def test_alpha_of_many_raters_is_that_of_the_table():
    rng = np.random.default_rng(0)
    table = rng.integers(1, 6, (7, 30)).astype(float)
    table[rng.random(table.shape) < 0.6] = np.nan
    raters, items = np.nonzero(~np.isnan(table))
    assert interval_alpha(items, table[raters, items]) == pytest.approx(krippendorff_alpha(table), abs=1e-12)
    assert np.isnan(interval_alpha([0, 0, 1, 1], [2, 2, 2, 2]))
    with pytest.raises(InputError, match="no item has two ratings"):
        interval_alpha([0, 1], [1, 2])


def test_a_rater_for_every_caption_takes_no_table(tmp_path, caplens):
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": str(number), "caption": "a dog" if number % 3 else "a cat", "references": ["a dog"],
            "system": "s" * (number % 5),
            "ratings": [{"value": int(rng.integers(1, 5)), "rater": f"r{number}"}],
        }
        for number in range(30_000)
    ]  # fmt: skip
    path = tmp_path / "rated.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = caplens("agreement", path, "-m", "length", "--resamples", "1", "-f", "json")
    # A table of 30,000 raters by captions is 7 GB.
    assert said.status == 0


def test_columns_whose_names_mean_something_are_not_read_back_as_that(tmp_path):
    (sample,) = [
        *SampleFile(_file(tmp_path, {"id": "1", "caption": "a", "meta": {"ID": "zz", " Lang": "en", "source": "web"}})),
    ]
    for suffix in ("jsonl", "csv", "tsv"):
        write_samples([sample], tmp_path / f"out.{suffix}")
        assert [*SampleFile(tmp_path / f"out.{suffix}")] == [sample]
    row = row_from_sample(sample)
    assert row["meta"] == {"ID": "zz", " Lang": "en", "source": "web"}
    (again,) = [*SampleFile(_file(tmp_path, row))]
    assert again == sample


def _file(folder, row):
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path


def test_an_empty_id_is_told(tmp_path):
    with pytest.raises(InputError, match="'id' is empty"):
        list(SampleFile(_file(tmp_path, {"id": "", "caption": "a"})))


def test_a_jpeg_of_several_scans_is_counted_as_such(tmp_path):
    photo = Image.effect_noise((200, 200), 90).convert("RGB")
    needed = {}
    for progressive in (False, True):
        path = tmp_path / f"{progressive}.jpg"
        photo.save(path, progressive=progressive)
        with Image.open(path) as image:
            assert (_scan_count(image) > 1) is progressive
            needed[progressive] = _needed(image, "it")
            image.load()
    assert needed[True] == needed[False] + 6 * 200 * 200


def test_weights_beside_an_onnx_file_are_not_loaded(tmp_path):
    onnx = need("onnx")
    from caplens.backbones import load_backbone

    for name in FILES:
        (tmp_path / name).write_bytes((mini_folder("caplens-mini") / name).read_bytes())
    onnx.save_model(
        onnx.load(tmp_path / "text.onnx"), tmp_path / "text.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert (tmp_path / "w.bin").is_file()
    with pytest.raises(InputError, match="onnxruntime cannot load this file"):
        load_backbone(str(tmp_path)).encode_texts(["a dog"])


def test_smaller_things_are_told(tmp_path, photos, caplens):
    captions, folder = photos
    assert "is not a model name" in caplens("score", captions, "--images", folder, "--model", "").err
    model = tmp_path / "model"
    model.mkdir()
    for name in FILES:
        (model / name).write_bytes((mini_folder("caplens-mini") / name).read_bytes())
    settings = json.loads((model / "model.json").read_text(encoding="utf-8"))
    (model / "model.json").write_text(json.dumps({**settings, "weight": 1e999}), encoding="utf-8")
    assert "out of range" in caplens("score", captions, "--images", folder, "--model", model).err
    (model / "caplens-manifest.json").write_text(json.dumps({"files": {"a\0b": "x"}}), encoding="utf-8")
    said = caplens("score", captions, "--images", folder, "--model", model)
    assert said.status == 2
    assert "missing, or is not the one" in said.err

"""What other executors, processes and metrics will build on: plans, matrices, and models that can be opened elsewhere."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
from fake_backbone import FakeBackbone
from PIL import Image

from caplens.backbones import load_backbone
from caplens.backbones.load_options import LoadOptions
from caplens.data.media import Frames, as_image, image_from_array, media_name
from caplens.embed import Engine, Store, Text
from caplens.embed.executors import EncodedBatch, LocalExecutor
from caplens.errors import InputError

PHOTOS = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "red")]


def test_a_plan_names_each_missing_item_once():
    engine = Engine(FakeBackbone())
    plan = engine.plan(PHOTOS, [Text("a"), Text("b"), Text("a")])
    assert len(list(plan.images)) == 2
    assert [text.caption for text in plan.texts.values()] == ["a", "b"]
    engine.prepare(PHOTOS, [Text("a")])
    plan = engine.plan(PHOTOS, [Text("a"), Text("b")])
    assert list(plan.images) == []
    assert [text.caption for text in plan.texts.values()] == ["b"]


def test_another_executor_can_compute_the_vectors():
    class Recording(LocalExecutor):
        """Spreads nothing, but is asked for exactly what is missing."""

        def __init__(self, backbone):
            super().__init__(backbone)
            self.asked: list[int] = []

        def encode_texts(self, texts):
            self.asked.append(len(texts))
            for batch in super().encode_texts(texts):
                yield EncodedBatch(*batch)

    backbone = FakeBackbone()
    executor = Recording(backbone)
    engine = Engine(backbone, executor=executor)
    vectors = engine.texts([Text("a"), Text("b")]).vectors
    engine.texts([Text("a"), Text("b"), Text("c")])
    assert executor.asked == [2, 1]
    np.testing.assert_array_equal(vectors, Engine(FakeBackbone()).texts([Text("a"), Text("b")]).vectors)


def test_a_store_keeps_a_matrix_for_each_key(tmp_path):
    kept = Store(tmp_path).model_vectors("m", "1" * 64)
    matrices = {bytes([n]) * 17: np.random.default_rng(n).normal(size=(n + 1, 8)).astype(np.float32) for n in range(5)}
    kept.put_matrices(matrices)
    again = Store(tmp_path).model_vectors("m", "1" * 64).get_matrices([*matrices, b"x" * 17])
    assert again.keys() == matrices.keys()
    for key, matrix in matrices.items():
        np.testing.assert_array_equal(again[key], matrix)
    with sqlite3.connect(kept.path) as connection:
        connection.execute("UPDATE matrices SET rows = 7 WHERE key = ?", (next(iter(matrices)),))
    assert len(kept.get_matrices(list(matrices))) == 4
    assert kept.verify() == (5, 1)
    assert kept.verify() == (4, 0)


def test_a_store_without_matrices_is_still_read(tmp_path):
    """The layout of caplens 0.1."""
    kept = Store(tmp_path).model_vectors("m", "1" * 64)
    kept.put([b"a" * 17], np.eye(1, 4, dtype=np.float32), [False])
    kept.close()
    with sqlite3.connect(kept.path) as connection:
        connection.execute("DROP TABLE matrices")
    old = Store(tmp_path).model_vectors("m", "1" * 64)
    assert old.get([b"a" * 17]).present.all()
    assert old.get_matrices([b"a" * 17]) == {}


def test_a_model_can_be_opened_again_in_another_process():
    backbone = load_backbone("caplens-mini", offline=True)
    assert backbone.spec == ("caplens-mini", LoadOptions(offline=True))
    code = (
        "import json, sys; from caplens.backbones import load_backbone; from caplens.backbones.load_options import LoadOptions;"
        "name, options = json.loads(sys.argv[1]);"
        "print(load_backbone(name, LoadOptions(**options)).fingerprint)"
    )
    described = json.dumps([backbone.spec.name, asdict(backbone.spec.options)])
    ran = subprocess.run([sys.executable, "-c", code, described], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == backbone.fingerprint
    assert FakeBackbone().spec is None


def test_media_are_paths_bytes_arrays_or_objects():
    pixels = np.zeros((4, 6, 3), dtype=np.uint8)
    pixels[..., 0] = 255
    assert image_from_array(pixels).getpixel((0, 0)) == (255, 0, 0)
    assert image_from_array(pixels.transpose(2, 0, 1) / 255).size == (6, 4)
    assert as_image("photo.jpg") == "photo.jpg"
    assert (media_name("a.jpg"), media_name(b"x"), media_name(b"x", "video")) == ("a.jpg", "the image", "the video")
    assert len(Frames((PHOTOS[0], "a.jpg")).images) == 2
    for bad, message in ((np.zeros((4, 4)), "three channels"), (np.full((4, 4, 3), 2.0), "between 0 and 1"), (5, "not int")):
        with pytest.raises(InputError, match=message):
            as_image(bad)

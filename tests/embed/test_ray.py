"""A cluster of three nodes on this machine: the same bits as without it, whoever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from extras import need
from PIL import Image

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = need("ray")
from ray.cluster_utils import Cluster

from caplens import score
from caplens.backbones.registry import load_backbone
from caplens.data import Sample
from caplens.embed import Engine
from caplens.embed.executors.ray import RayExecutor
from caplens.embed.keys import Text, text_key
from caplens.errors import InputError

WORDS = "a dog cat runs sits red blue man woman child on the in snow street with ball bike under tree".split()
_STORE = 80 << 20
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    started = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": _STORE}
    )
    for _ in range(2):
        started.add_node(num_cpus=1, object_store_memory=_STORE)
    ray.init(address=started.address, log_to_driver=False, configure_logging=False)
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """8,000 captions of 200 photos; 20,000 are in the test of partitions."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(200):
        Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)).resize((96, 72)).save(folder / f"{number}.png")
    return [
        Sample(str(row), " ".join(rng.choice(WORDS, 8)), image=str(folder / f"{row % 200}.png"), lang="en")
        for row in range(8_000)
    ]


def test_scores_and_corpus_values_are_those_of_one_machine(cluster, samples):
    local = score(samples, ["clipscore"], keep_store=False, resamples=10)
    spread = score(samples, ["clipscore"], keep_store=False, resamples=10, executor="ray")
    np.testing.assert_array_equal(spread["clipscore"].values, local["clipscore"].values)
    assert spread["clipscore"].corpus == local["clipscore"].corpus
    assert spread.intervals == local.intervals
    assert spread["clipscore"].signature == local["clipscore"].signature


def test_a_node_that_is_killed_loses_nothing_and_nothing_comes_twice(cluster, samples, monkeypatch):
    # So many portions that every node has some when the first comes back.
    monkeypatch.setattr("caplens.embed.executors.ray._TEXTS", 200)
    backbone = load_backbone("caplens-mini")
    texts = {text_key(text): text for text in dict.fromkeys(Text(sample.caption) for sample in samples[:6_000])}
    expected = Engine(backbone).texts(list(texts.values()))
    executor = RayExecutor(backbone)
    vectors = {}
    batches = executor.encode_texts(texts)
    node = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
    cluster.wait_for_nodes()
    for number, batch in enumerate(batches):
        assert not vectors.keys() & set(batch.keys)
        vectors.update(zip(batch.keys, batch.vectors, strict=True))
        if not number:
            cluster.remove_node(node, allow_graceful=False)
    executor.close()
    assert executor.lost >= 1
    assert set(vectors) == set(texts)
    np.testing.assert_array_equal(np.array([vectors[key] for key in texts]), expected.vectors[expected.index])


def test_a_killed_driver_goes_on_where_it_stopped(cluster, samples, tmp_path):
    captions = tmp_path / "captions.jsonl"
    rows = [{"id": one.id, "caption": one.caption, "image": one.image, "lang": "en"} for one in samples[:4_000]]
    captions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    common = ("score", captions, "-m", "clipscore", "--resamples", "0", "-q")

    def start(output, *options):
        return subprocess.Popen([sys.executable, "-m", "caplens", *map(str, common), *options, "-o", str(tmp_path / output)])

    spread = ("--engine", "ray", "--ray-address", cluster.address, "--store", str(tmp_path / "store"))
    kills = 0
    for wait in (3, 5):
        process = start("spread.json", *spread)
        time.sleep(wait)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills
    assert start("spread.json", *spread).wait(400) == 0
    assert start("local.json", "--no-store").wait(400) == 0
    first, second = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("spread.json", "local.json"))
    assert first["metrics"] == second["metrics"]


def test_errors_are_sentences(cluster, tmp_path, monkeypatch):
    backbone = load_backbone("caplens-mini")
    executor = RayExecutor(backbone)
    monkeypatch.setattr(backbone, "fingerprint", "another")
    with pytest.raises(InputError, match="another version of this model"):
        list(executor.encode_texts({b"k": Text("a dog")}))
    executor.close()
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff")
    monkeypatch.undo()
    result = score([Sample("1", "a dog", image=str(broken)), Sample("2", "a dog", image=str(tmp_path / "x.jpg"))],
                   ["clipscore", "length"], keep_store=False, executor="ray")  # fmt: skip
    assert {row: error.reason.partition(" ")[0] for row, error in result["clipscore"].errors.items()}.keys() == {0, 1}
    with pytest.raises(InputError, match="cannot be sent"):
        backbone.spec = None
        RayExecutor(backbone)


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path):
    (tmp_path / "captions.jsonl").write_text('{"id": "1", "caption": "a dog"}\n', encoding="utf-8")
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    command = [sys.executable, "-m", "caplens", "score", tmp_path / "captions.jsonl", "--images", tmp_path, "-q", "--no-store"]
    for options, words in (
        (("--engine", "ray", "--ray-address", "127.0.0.1:1"), "there is no Ray cluster at"),
        (("--ray-address", "auto"), "add --engine ray"),
    ):
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_modules_of_the_current_folder_are_not_imported_by_workers(tmp_path):
    """The folder of a stranger's photos may hold a numpy.py."""
    (tmp_path / "captions.jsonl").write_text('{"id": "1", "caption": "a dog", "image": "1.png"}\n', encoding="utf-8")
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    for name in ("numpy", "torch", "onnxruntime"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n", encoding="utf-8")
    command = [Path(sys.executable).parent / "caplens", "score", "captions.jsonl", "--images", ".", "-m", "clipscore"]
    options = ["--engine", "ray", "--no-store", "--json", "-q"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "run").exists()

"""Partitions on a cluster of three nodes: the same bits as on one machine, whatever is lost on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from extras import need
from PIL import Image

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray, arrow, parquet = need("ray"), need("pyarrow"), need("pyarrow.parquet")
from ray.cluster_utils import Cluster

from caplens import score_partitions
from caplens.embed.store import Store
from caplens.embed.vector_shards import import_vectors
from caplens.metrics.options import ScoringOptions
from caplens.partitions import inputs

WORDS = "a dog cat runs sits red blue man woman child on the in snow street with ball bike under tree".split()
METRICS = ["clipscore", "cider"]
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
def captions(tmp_path_factory):
    """20,000 captions of 200 photos in ten files, and their scores on one machine."""
    folder, rng = tmp_path_factory.mktemp("captions"), np.random.default_rng(0)
    (folder / "photos").mkdir()
    (folder / "parts").mkdir()
    for number in range(200):
        pixels = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((96, 72)).save(folder / "photos" / f"{number}.png")
    rows = [
        {"id": str(row), "caption": " ".join(rng.choice(WORDS, 8)), "references": [" ".join(rng.choice(WORDS, 8))],
         "image": f"{row % 200}.png", "lang": "en"}
        for row in range(20_000)
    ]  # fmt: skip
    for number in range(10):
        table = arrow.Table.from_pylist(rows[number * 2000 : (number + 1) * 2000])
        parquet.write_table(table, folder / "parts" / f"{number}.parquet", row_group_size=500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "_ROWS", 1000)
        local = score_partitions(folder / "parts", folder / "local", METRICS, **options(folder))
    assert local.partitions == 20
    return folder, local.to_dict()["metrics"], files_of(folder / "local")


def options(folder, executor="local", address=None):
    scoring = ScoringOptions(executor=executor, ray_address=address, keep_store=False)
    return {"images": folder / "photos", "resamples": 20, "options": scoring}


def files_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "scores").iterdir()}


def test_scores_are_those_of_one_machine_though_a_node_is_killed(cluster, captions, tmp_path, monkeypatch):
    folder, metrics, files = captions
    monkeypatch.setattr(inputs, "_ROWS", 1000)
    node = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
    cluster.wait_for_nodes()
    manifests = tmp_path / "out" / "manifests"

    def kill_when_half_is_there():
        while not manifests.is_dir() or len(list(manifests.glob("*.json"))) < 8:
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill_when_half_is_there)
    killer.start()
    result = score_partitions(folder / "parts", tmp_path / "out", METRICS, keep_vectors=True, **options(folder, "ray"))
    killer.join()
    assert result.to_dict()["metrics"] == metrics
    assert files_of(tmp_path / "out") == files
    assert result.retries >= 1
    # Owners share the keys. Vectors that were on the node which was killed are gone, unless they were asked for again.
    (imported,) = import_vectors(tmp_path / "out" / "vectors", Store(tmp_path / "store"))
    assert imported.damaged == 0
    assert 8_000 < imported.taken <= 20_200


def kill_after(count, manifests, command):
    """Kill a program once so many partitions are there."""
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 300
    while len(list(manifests.glob("*.json"))) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None, "it was too quick to be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_driver_goes_on_and_a_damaged_partition_is_made_again(cluster, captions, tmp_path):
    folder, metrics, _ = captions
    out = tmp_path / "out"
    command = [sys.executable, "-m", "caplens", "score", folder / "parts", "--images", folder / "photos", "-m", ",".join(METRICS),
               "--resamples", "20", "-q", "--engine", "ray", "--ray-address", cluster.address, "-o", out]  # fmt: skip
    kill_after(3, out / "manifests", list(map(str, command)))
    # Tasks that were running then may still publish what they have.
    time.sleep(2)
    before = {path.name: path.stat().st_mtime_ns for path in (out / "scores").iterdir()}
    damaged = min((out / "scores").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-5])
    assert subprocess.run(list(map(str, command)), timeout=400).returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in (out / "scores").iterdir()}
    assert len(after) == 10
    same = [name for name in before if after[name] == before[name]]
    assert len(same) >= len(before) - 1 >= 2
    assert damaged.name not in same
    content = json.loads((out / "result.json").read_text(encoding="utf-8"))
    for name in METRICS:
        for about in ("value", "scored", "signature"):
            assert content["metrics"][name][about] == metrics[name][about]
    assert content["captions"] == 20_000

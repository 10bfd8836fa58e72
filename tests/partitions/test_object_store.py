"""Captions, photos and scores in an object store. CAPLENS_S3 is the address of one that speaks S3, such as moto's server:

pip install 'moto[server]', in an environment of its own; moto_server -p 5599; CAPLENS_S3=http://127.0.0.1:5599 pytest …
"""

import json
import os
import uuid
from pathlib import Path

import numpy as np
import pytest
from extras import need
from PIL import Image

arrow, parquet, fs = need("pyarrow"), need("pyarrow.parquet"), need("pyarrow.fs")

from caplens import InputError, score_partitions
from caplens.metrics.options import ScoringOptions

WORDS = "a dog cat runs sits red blue man woman child on the in snow street with ball bike under tree".split()
METRICS = ["clipscore", "cider"]


@pytest.fixture
def bucket(monkeypatch):
    """A new bucket, and the file system it is in."""
    address = os.environ.get("CAPLENS_S3")
    if not address:
        pytest.skip("needs a server that speaks S3, and its address in $CAPLENS_S3")
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": address,
                        "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    name = f"caplens-{uuid.uuid4().hex[:12]}"
    system, _ = fs.FileSystem.from_uri("s3://x/x")
    create, _ = fs.FileSystem.from_uri("s3://x/x?allow_bucket_creation=true")
    create.create_dir(name)
    return name, system


@pytest.fixture
def captions(tmp_path):
    """600 captions of 20 photos in three files."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    (tmp_path / "parts").mkdir()
    for number in range(20):
        pixels = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((96, 72)).save(tmp_path / "photos" / f"{number}.png")
    rows = [
        {"id": str(row), "caption": " ".join(rng.choice(WORDS, 8)), "references": [" ".join(rng.choice(WORDS, 8))],
         "image": f"{row % 21}.png", "lang": "en"}
        for row in range(600)
    ]  # fmt: skip
    for number in range(2):
        table = arrow.Table.from_pylist(rows[number * 200 : (number + 1) * 200])
        parquet.write_table(table, tmp_path / "parts" / f"{number}.parquet", row_group_size=50)
    lines = "".join(json.dumps(row) + "\n" for row in rows[400:])
    (tmp_path / "parts" / "2.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def upload(system, folder, place):
    for path in Path(folder).iterdir():
        with system.open_output_stream(f"{place}/{path.name}") as out:
            out.write(path.read_bytes())


def test_scores_in_an_object_store_are_those_of_files(bucket, captions):
    name, system = bucket
    options = {"options": ScoringOptions(keep_store=False), "resamples": 20}
    local = score_partitions(captions / "parts", captions / "out", METRICS, images=captions / "photos", **options)
    for part in ("parts", "photos"):
        upload(system, captions / part, f"{name}/{part}")
    place = f"s3://{name}/scores"
    remote = score_partitions(f"s3://{name}/parts/*", place, METRICS, images=f"s3://{name}/photos", **options)
    assert remote.failed == local.failed > 0
    for metric in METRICS:
        assert remote[metric].total == local[metric].total
    infos = system.get_file_info(fs.FileSelector(f"{name}/scores/scores"))
    rows = {row["id"]: row for info in infos for row in parquet.read_table(info.path, filesystem=system).to_pylist()}
    for path in (captions / "out" / "scores").iterdir():
        for row in parquet.read_table(path).to_pylist():
            assert rows.pop(row["id"])["clipscore"] == row["clipscore"]
    assert rows == {}
    # Nothing is done again, unless it is damaged.
    with system.open_output_stream(infos[0].path) as out:
        out.write(b"PAR1")
    again = score_partitions(f"s3://{name}/parts/*", place, METRICS, images=f"s3://{name}/photos", **options)
    assert again.reused == remote.partitions - 1
    assert again.to_dict() == remote.to_dict()


def test_what_is_not_in_the_store_is_a_sentence(bucket, captions):
    name, _ = bucket
    with pytest.raises(InputError, match="there are no files of this name"):
        score_partitions(f"s3://{name}/none/*.parquet", captions / "out", ["length"])
    with pytest.raises(InputError, match=r"cannot be read|cannot be opened|no files"):
        score_partitions("s3://no-such-bucket-here/x.parquet", captions / "out", ["length"])
    with pytest.raises(InputError, match="cannot be opened"):
        score_partitions("nonsense://x/y.parquet", captions / "out", ["length"])

"""What a third attacker found in small files that take much memory or time."""

import io
import json
import os
import struct
import subprocess
import sys
import zlib

import pytest
from extras import need
from faults.harness import plain_environment, run_caplens, write_rows
from PIL import Image

import caplens
from caplens.data import SampleFile
from caplens.embed.memory import MemoryBudget
from caplens.errors import CaplensError, InputError


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


def test_a_result_cannot_make_the_report_wait_for_a_stream(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", {"id": "1", "caption": "a dog"})
    assert run_caplens(tmp_path, "score", path, "-m", "length", "--resamples", "0", "-o", "a.json")[0] == 0
    document = json.loads((tmp_path / "a.json").read_text())
    document["inputs"] = {"captions": "/dev/stdin"}
    (tmp_path / "b.json").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "caplens", "report", "b.json", "-o", "b.html"], cwd=tmp_path, env=plain_environment(),
        stdin=subprocess.PIPE, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "there is no such file or folder any more" in (tmp_path / "b.html").read_text(encoding="utf-8")


def test_too_many_pairs_are_left_out_and_said(tmp_path, monkeypatch):
    from caplens.benchmarks import own_ratings

    monkeypatch.setattr(own_ratings, "_MOST_PAIRS", 2)
    rows = [{"id": str(number), "image": "x.jpg", "caption": "a " * number, "ratings": [number]} for number in range(1, 4)]
    result = caplens.agreement(write_rows(tmp_path / "r.jsonl", *rows), ["length"], resamples=5)
    assert not result.pairwise
    assert any("pairwise accuracy was left out" in warning for warning in result.warnings)


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


def test_decoding_where_the_disk_is_full_blames_the_disk(monkeypatch):
    from caplens.backbones.transform import ImageTransform
    from caplens.embed.decode_pool import DecoderPool

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CaplensError, match="there is no room for decoded images"):
        DecoderPool(1, 1, ImageTransform((8, 8), "squash"))


@pytest.mark.parametrize(
    "config",
    [
        {"size": {"shortest_edge": 25_000}, "crop_size": {"height": 32, "width": 32}},
        {"size": {"height": 60_000, "width": 60_000}},
        {"image_mean": ["a", "b", "c"]},
        {"image_mean": 5},
        {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": "x"},
        {"image_processor_type": "Siglip2ImageProcessor", "patch_size": 10**9},
    ],
)
def test_what_a_model_says_about_images_has_limits(config):
    from caplens.backbones.transform import ImageTransform

    with pytest.raises(InputError, match="cannot be used"):
        ImageTransform.from_transformers(config, "preprocessor_config.json")

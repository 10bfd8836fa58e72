"""What a sixth attacker met: each test failed before."""

import sqlite3
import struct

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.data.image_folder import with_images
from caplens.embed.images import UnreadableError
from caplens.embed.store import Store
from caplens.embed.videos import FrameChoice, VideoClip, clip_key, read_frames
from caplens.errors import CaplensError, InputError
from caplens.metrics.pair_statistics import PairStatistics


@pytest.mark.parametrize("table", ["about", "sqlite_autoindex_vectors_1"])
def test_verify_keeps_the_vectors_of_a_store_whose_other_pages_are_damaged(tmp_path, table):
    store, count = Store(tmp_path / "store"), 3000
    vectors = store.model_vectors("a model", "0" * 64)
    keys = [number.to_bytes(16, "big") for number in range(count)]
    vectors.put(keys, np.random.default_rng(0).normal(size=(count, 16)).astype(np.float32), [False] * count)
    vectors.close()
    (about,) = store.models()
    with sqlite3.connect(about.path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    content = bytearray(about.path.read_bytes())
    (size,) = struct.unpack(">H", content[16:18])
    content[(root - 1) * size : (root - 1) * size + 512] = b"\xff" * 512
    about.path.write_bytes(content)
    ((_, kept, _),) = store.verify()
    assert kept == count
    after = store.model_vectors("a model", "0" * 64)
    assert after.get(keys).present.all()
    after.close()


def test_frames_per_second_of_a_video_with_a_gap_take_no_memory():
    assert FrameChoice(fps=1).indices([0.0, 0.5, 1.0, 1e9]) == [0, 2, 3]
    assert FrameChoice(fps=2).indices([0.0, 0.1, 0.5, 0.9, 1.0]) == [0, 2, 4]
    with pytest.raises(UnreadableError, match="more than 4,096"):
        FrameChoice(fps=1e6).indices([number / 1000 for number in range(5000)])
    assert FrameChoice(fps=0.3333333).label != FrameChoice(fps=0.3333334).label


def test_a_folder_of_frames_that_changes_has_another_key(tmp_path):
    from PIL import Image

    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    first = clip_key(VideoClip(str(tmp_path)), FrameChoice())
    Image.new("RGB", (8, 8), "red").save(tmp_path / "1.png")
    assert clip_key(VideoClip(str(tmp_path)), FrameChoice()) != first


def test_a_video_that_changes_while_it_is_read_is_told(tmp_path, monkeypatch):
    from PIL import Image

    from caplens.embed import sequences

    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")

    def read(clip, choice, transform):
        Image.new("RGB", (8, 8), "red").save(tmp_path / "1.png")
        return read_frames(clip, choice, transform)

    monkeypatch.setattr(sequences, "read_frames", read)
    sample = package.Sample("1", "a dog", video=str(tmp_path))
    result = package.score([sample], ["emscore", "length"], model="caplens-mini", keep_store=False)
    assert "changed while it was read" in result["emscore"].errors[0].reason


def test_a_video_of_two_files_is_told(tmp_path):
    for suffix in ("mp4", "avi"):
        (tmp_path / f"v.{suffix}").touch()
    with pytest.raises(InputError, match=r"could be v\.mp4 and v\.avi"):
        list(with_images([package.Sample("1", "a dog", video="v")], tmp_path))


@pytest.mark.parametrize("duration", [0, 1e-300, 1e12])
def test_a_duration_that_is_none_is_told(tmp_path, duration):
    sample = package.Sample("1", "a dog", video=str(tmp_path), meta={"duration": duration})
    with pytest.raises(InputError, match="'duration' is a number of seconds"):
        package.score([sample], ["emscore"], model="caplens-mini", keep_store=False)


def test_damaged_statistics_of_mid_are_told(tmp_path):
    statistics = PairStatistics(4, "m", "0" * 64)
    rng = np.random.default_rng(0)
    statistics.add(rng.normal(size=(50, 4)), rng.normal(size=(50, 4)))
    statistics.save(tmp_path / "mid.npz")
    good = bytearray((tmp_path / "mid.npz").read_bytes())
    refused = 0
    for _ in range(400):
        content = bytearray(good)
        for place in rng.integers(0, len(content), 3):
            content[place] ^= int(rng.integers(1, 256))
        (tmp_path / "bad.npz").write_bytes(content)
        try:
            PairStatistics.load(tmp_path / "bad.npz")
        except InputError:
            refused += 1
    assert refused > 100


def test_weights_that_are_not_numbers_give_no_score_of_a_video(clip_folder, tmp_path):
    import shutil

    torch = need("torch")
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(clip_folder, tmp_path / "clip-vit-base-patch32")
    weights = load_file(folder / "model.safetensors")
    name = next(key for key in weights if "visual_projection" in key)
    weights[name] = torch.full_like(weights[name], float("nan"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    from PIL import Image

    Image.new("RGB", (32, 32), "red").save(tmp_path / "1.png")
    (tmp_path / "frames").mkdir()
    shutil.copy(tmp_path / "1.png", tmp_path / "frames")
    sample = package.Sample("1", "a dog", video=str(tmp_path / "frames"))
    with pytest.raises(CaplensError, match="not finite numbers"):
        package.score([sample], ["emscore"], model=f"hf:{folder}", keep_store=False)

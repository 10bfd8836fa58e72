"""What a sixth attacker met: each test failed before."""

import os
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


def test_columns_of_seconds_may_be_capitals_but_not_twice(tmp_path):
    from caplens.embed.videos import clip_of

    clip = clip_of(package.Sample("1", "a dog", video="v.mp4", meta={"Start": "2", " END ": 5}))
    assert (clip.start, clip.end) == (2, 5)
    with pytest.raises(InputError, match="several columns mean 'start'"):
        clip_of(package.Sample("1", "a dog", video="v.mp4", meta={"Start": 2, "start": 3}))


def test_a_video_outside_the_folder_is_an_error_of_its_row(tmp_path):
    from PIL import Image

    for name in ("inside/v", "outside"):
        (tmp_path / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / name / "1.png")
    samples = [package.Sample("1", "a dog", video="v"), package.Sample("2", "a dog", video="../outside")]
    result = package.score(samples, ["emscore"], images=tmp_path / "inside", model="caplens-mini", keep_store=False)
    assert list(result["emscore"].errors) == [1]
    assert "outside the folder" in result["emscore"].errors[1].reason


def test_a_frame_that_is_edited_between_two_calls_of_one_engine_counts(tmp_path):
    from PIL import Image

    from caplens.metrics.options import ScoringOptions

    Image.new("RGB", (64, 64)).save(tmp_path / "1.png")
    stat = tmp_path.stat()
    engine = ScoringOptions(model="caplens-mini", keep_store=False).engine()
    sample = package.Sample("1", "a red wall", video=str(tmp_path))
    before = package.score([sample], ["emscore"], model=engine)["emscore"].corpus
    Image.new("RGB", (64, 64), "red").save(tmp_path / "1.png")
    os.utime(tmp_path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert package.score([sample], ["emscore"], model=engine)["emscore"].corpus != before


def test_the_prompt_of_fitted_pairs_is_that_of_the_scores(tmp_path):
    from PIL import Image

    from caplens.metrics.options import ScoringOptions

    Image.new("RGB", (64, 64)).save(tmp_path / "1.png")
    sample = package.Sample("1", "a wall", image=str(tmp_path / "1.png"))
    engine = ScoringOptions(model="caplens-mini", keep_store=False).engine()
    package.fit_mid([sample], model=engine, prompt="A photo of ").save(tmp_path / "mid.npz")
    fitted = {"mid": tmp_path / "mid.npz", "shrinkage": 0.1, "model": engine}
    package.score([sample], ["mid"], prompt="A photo of ", **fitted)
    with pytest.raises(InputError, match="fitted with the prompt 'A photo of ', not with ''"):
        package.score([sample], ["mid"], **fitted)


def test_systems_that_describe_different_seconds_of_a_video_are_not_compared():
    from caplens.comparison.systems import align_systems

    first, second = ([package.Sample("1", "a dog", video="v.mp4", meta={"start": start})] for start in (0, 5))
    with pytest.raises(InputError, match="different seconds"):
        align_systems({"a": first, "b": second})


@pytest.mark.parametrize(
    ("first", "second"),
    [("visual.conv1.weight", "module.visual.conv1.weight"), ("visual.conv1.weight", "visual.conv.conv1.weight")],
)
def test_a_checkpoint_with_a_weight_under_two_names_is_refused(tmp_path, first, second):
    torch = need("torch")
    from caplens.backbones.checkpoint import apply

    torch.save({first: torch.ones(2), second: torch.zeros(2)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match="there twice, under two names"):
        apply(torch.nn.Linear(1, 1), tmp_path / "weights.pt")


def test_a_checkpoint_of_absurdly_many_positions_is_refused(tmp_path):
    torch = need("torch")
    from caplens.backbones.checkpoint import apply

    torch.save({"positional_embedding": torch.zeros(1 << 17, 1)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match="131,072 rows"):
        apply(torch.nn.Linear(1, 1), tmp_path / "weights.pt")


def test_the_store_counts_videos_too(tmp_path):
    vectors = Store(tmp_path).model_vectors("a model", "0" * 64)
    vectors.put_matrices({b"v" * 16: np.ones((3, 4), np.float32)})
    vectors.close()
    assert [about.vectors for about in Store(tmp_path).models()] == [1]

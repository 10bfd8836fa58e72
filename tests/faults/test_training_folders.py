"""What a third attacker found in training: runs that were mistaken for others, and folders that were not theirs."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from extras import need
from faults.harness import EXAMPLES

from caplens.data import Sample
from caplens.errors import InputError


def test_a_folder_of_somebody_else_is_no_folder_of_arun_caplens(tmp_path):
    need("torch")
    from caplens.training.loop.run import RUN, claim_folder

    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match="holds model, which would be replaced"):
        claim_folder(tmp_path, {"seed": 0})
    assert not (tmp_path / RUN).exists()
    (tmp_path / "model").rmdir()
    claim_folder(tmp_path, {"seed": 0}, writes=False)
    assert not (tmp_path / RUN).exists()
    claim_folder(tmp_path, {"seed": 0})
    (tmp_path / "model").mkdir()
    claim_folder(tmp_path, {"seed": 0})


def test_a_run_is_known_by_its_photos(tmp_path):
    need("torch")
    from caplens.training.recipes.pairs import Photos, RatedCaptions

    names = ["a/1.jpg", "b/1.jpg", "c/1.jpg"]
    for name, size in zip(names, (3, 3, 4), strict=True):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x" * size)

    def of(kind, name):
        (tmp_path / "other.jpg").write_bytes(b"y")
        images = [tmp_path / name, tmp_path / "other.jpg"]
        samples = [Sample(str(place), "a dog", image=image, ratings=(place,)) for place, image in enumerate(images)]
        return kind(samples).fingerprint

    for kind in (Photos, RatedCaptions.of):
        same, moved, other = (of(kind, name) for name in names)
        assert same == moved != other


@pytest.mark.parametrize("text", ["a." * 60_000 + "b=1\n", "a=1\n" * 2000])
def test_a_recipe_is_short(tmp_path, text):
    need("torch")
    from caplens.training.recipes.prmcs import PrmcsRecipe
    from caplens.training.recipes.recipe import read_recipe

    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="this is no recipe"):
        read_recipe(PrmcsRecipe, tmp_path / "r.toml")
    with pytest.raises(InputError, match="this is not a TOML value"):
        read_recipe(PrmcsRecipe, None, ["train.steps=3\nx=1"])


def test_of_two_runs_that_begin_together_one_gets_the_folder(tmp_path, monkeypatch):
    need("torch")
    from caplens.training.loop import run

    link = os.link

    def late(source, target):
        (tmp_path / run.RUN).write_text(json.dumps({"seed": 2}), encoding="utf-8")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InputError, match="another run has just begun here"):
        run.claim_folder(tmp_path, {"seed": 1})
    assert json.loads((tmp_path / run.RUN).read_text()) == {"seed": 2}


@pytest.mark.parametrize("links", [True, False])
def test_the_settings_of_a_run_are_never_half_written(tmp_path, monkeypatch, links):
    need("torch")
    from caplens.training.loop import run

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    if not links:
        monkeypatch.setattr(os, "link", fail)
        run.claim_folder(tmp_path / "without", {"seed": 1})
        assert json.loads((tmp_path / "without" / run.RUN).read_text()) == {"seed": 1}
    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(InputError, match="cannot be written"):
        run.claim_folder(tmp_path / "full", {"seed": 1})
    assert not list((tmp_path / "full").iterdir())


def test_photos_to_train_on_are_files_with_one_name(tmp_path):
    need("torch")
    from caplens.training.mini.collection import photo_versions, read_photos

    photos = tmp_path / "flickr8k" / "images"
    photos.mkdir(parents=True)
    (photos / "1.jpg").write_bytes((EXAMPLES / "cat.jpg").read_bytes())
    before = photo_versions(tmp_path, ["1.jpg"])
    assert read_photos(tmp_path, ["1.jpg"], 8).shape == (1, 3, 8, 8)
    (photos / "1.png").write_bytes(b"")
    assert read_photos(tmp_path, ["1.jpg"], 8).shape == (1, 3, 8, 8)
    with pytest.raises(InputError, match=r"the photo 1\.webp could be"):
        read_photos(tmp_path, ["1.webp"], 8)
    (photos / "1.jpg").write_bytes((EXAMPLES / "rocket.jpg").read_bytes())
    assert photo_versions(tmp_path, ["1.jpg"]) != before
    (photos / "1.jpg").unlink()
    (photos / "1.png").unlink()
    os.mkfifo(photos / "1.jpg")
    with pytest.raises(InputError, match="pipe or a device"):
        read_photos(tmp_path, ["1.jpg"], 8)


@pytest.mark.parametrize("what", ["large", "encrypted"])
def test_an_archive_of_photos_does_not_fill_the_memory(tmp_path, monkeypatch, what):
    need("torch")
    from caplens.training.mini import collection

    monkeypatch.setattr(collection, "_LARGEST_PHOTO", 1000)
    (tmp_path / "flickr8k").mkdir()
    path = tmp_path / "flickr8k" / "images.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.jpg", b"\0" * 100_000)
    if what == "encrypted":
        content = bytearray(path.read_bytes())
        content[content.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(content)
    with pytest.raises(InputError, match="larger than" if what == "large" else "encrypted"):
        collection.read_photos(tmp_path, ["1.jpg"], 8)


@pytest.mark.parametrize("damage", ["cut", "lacking"])
def test_a_damaged_teacher_gets_a_sentence(tmp_path, damage):
    need("torch")
    from caplens.training.mini.teacher import Teacher

    path = tmp_path / "teacher.npz"
    np.savez(path, **{"stem.weight": np.zeros((8, 3, 3, 3), dtype=np.float16)})
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match="Get them again"):
        Teacher(path)


def test_links_of_a_model_that_lead_elsewhere_are_not_copied(tmp_path):
    need("torch")
    from caplens.training.loop.towers import copy_small

    repository = tmp_path / "hub" / "models--x"
    snapshot, blobs, elsewhere = repository / "snapshots" / "1", repository / "blobs", tmp_path / "secret.json"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    for file in (blobs / "b.json", elsewhere):
        file.write_text("{}", encoding="utf-8")
    (snapshot / "config.json").symlink_to(blobs / "b.json")
    (snapshot / "notes.json").symlink_to(elsewhere)
    (tmp_path / "copy").mkdir()
    copy_small(snapshot, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["config.json"]


def test_captions_that_were_generated_survive_a_kill(tmp_path):
    need("torch")
    from caplens.training.augment import _read_descriptions

    path = tmp_path / "described.jsonl"
    path.write_bytes('["1.jpg", "a caf\u2028é"]\n5\n["2.jpg", "caf'.encode() + b"\xc3")
    assert _read_descriptions(path) == {"1.jpg": "a caf\u2028é"}


def test_a_damaged_log_does_not_stop_arun_caplens(tmp_path):
    need("torch")
    from caplens.training.loop.log import LOG, Log

    (tmp_path / LOG).write_bytes(b'{"stage": "tune", "step": 1}\n{"stage": "tune", "st\xff')
    Log(tmp_path, "tune", 1)
    assert (tmp_path / LOG).read_bytes() == b'{"stage": "tune", "step": 1}\n'
    (tmp_path / LOG).unlink()
    os.mkfifo(tmp_path / LOG)
    with pytest.raises(InputError, match="pipe or a device"):
        Log(tmp_path, "tune", 1)

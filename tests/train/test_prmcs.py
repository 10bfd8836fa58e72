"""Tuning a text tower to notice perturbed captions, on the example of the package."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import torch
from safetensors.torch import load_file

import caplens as package
from caplens.backbones.mini import mini_folder
from caplens.data import SampleFile, with_images
from caplens.embed import open_engine
from caplens.errors import CaplensError, InputError
from caplens.train import loop
from caplens.train.prmcs import train_prmcs
from caplens.train.recipe import read_config

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
MINI = mini_folder("caplens-mini")


@pytest.fixture(scope="module")
def samples():
    return list(with_images(SampleFile(EXAMPLES / "good.jsonl"), EXAMPLES))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return open_engine("caplens-mini", store=tmp_path_factory.mktemp("store") / "vectors.sqlite")


@pytest.fixture(scope="module")
def tuned(samples, engine, tmp_path_factory):
    config = read_config(None, ["train.steps=40"], recipe="prmcs")
    return train_prmcs(samples, engine, MINI, tmp_path_factory.mktemp("run"), config, device="cpu")


def test_perturbations_are_noticed_and_the_image_tower_is_as_it_was(tuned, samples):
    before, after = (
        package.robustness(samples, ["clipscore"], ["jumble", "removal", "masking"], model=model, resamples=2).found
        for model in ("caplens-mini", str(tuned))
    )
    by = [{(one.lang, one.perturbation): one for one in found} for found in (before, after)]
    assert by[1]["all", "all"].accuracy > by[0]["all", "all"].accuracy + 10
    assert by[1]["all", "all"].drop < by[0]["all", "all"].drop - 20
    assert (tuned / "image.onnx").read_bytes() == (MINI / "image.onnx").read_bytes()
    assert (tuned / "vocabulary.tsv").read_bytes() == (MINI / "vocabulary.tsv").read_bytes()
    assert (tuned / "text.onnx").read_bytes() != (MINI / "text.onnx").read_bytes()


def test_its_settings_say_what_made_it(tuned):
    settings = json.loads((tuned / "model.json").read_text(encoding="utf-8"))
    assert settings["tuned"]["recipe"] == "prmcs"
    assert settings["tuned"]["settings"]["train"]["steps"] == 40
    assert set(settings["tuned"]["given"]) == {"model", "captions"}
    assert settings["languages"] == json.loads((MINI / "model.json").read_text(encoding="utf-8"))["languages"]


class StoppedError(Exception):
    pass


def test_a_stopped_run_goes_on_to_the_same_weights(samples, engine, tmp_path, monkeypatch):
    config = read_config(None, ["train.steps=6"], recipe="prmcs")
    train_prmcs(samples, engine, MINI, tmp_path / "whole", config, device="cpu")
    monkeypatch.setattr(loop, "_SAVED_EVERY", -1.0)
    saved = loop._save

    def save_and_stop(path, step, *rest):
        saved(path, step, *rest)
        if step == 3:
            raise StoppedError

    monkeypatch.setattr(loop, "_save", save_and_stop)
    with pytest.raises(StoppedError):
        train_prmcs(samples, engine, MINI, tmp_path / "stopped", config, device="cpu")
    monkeypatch.setattr(loop, "_save", saved)
    train_prmcs(samples, engine, MINI, tmp_path / "stopped", config, device="cpu")
    whole, stopped = (load_file(tmp_path / run / "text.safetensors") for run in ("whole", "stopped"))
    assert all(torch.equal(whole[key], stopped[key]) for key in whole)
    # Other captions are another run.
    with pytest.raises(InputError, match="or other data"):
        train_prmcs(samples[:-1], engine, MINI, tmp_path / "whole", config, device="cpu")


def test_bad_input_is_told(samples, engine, tmp_path, monkeypatch, caplens, write):
    config = read_config(None, ["train.steps=2"], recipe="prmcs")
    alone = [sample for sample in samples if "astronaut" in str(sample.image)]
    for some, words in (([], "no caption has an image"), (alone, "at least two photos are needed")):
        with pytest.raises(InputError, match=words):
            train_prmcs(some, engine, MINI, tmp_path / words[:2], config, device="cpu")
    monkeypatch.setattr("caplens.train.prmcs.contrastive", lambda *_: torch.tensor(np.nan, requires_grad=True))
    with pytest.raises(CaplensError, match="the loss is no number"):
        train_prmcs(samples, engine, MINI, tmp_path / "nan", config, device="cpu")
    assert not (tmp_path / "nan" / "model").exists()
    with pytest.raises(InputError, match="with a key of the recipe, such as train"):
        read_config(None, ["train.step=2"], recipe="prmcs")
    arguments = [EXAMPLES / "good.jsonl", "--images", EXAMPLES, "--out", tmp_path / "cli"]
    assert "only caplens-mini" in caplens("train", "prmcs", *arguments, "--model", "hf:openai/clip").err
    gone = write("gone.jsonl", [{"id": "1", "image": "gone.jpg", "caption": "a dog"}])
    assert "there is no file" in caplens("train", "prmcs", gone, "--images", EXAMPLES, "--out", tmp_path / "gone").err

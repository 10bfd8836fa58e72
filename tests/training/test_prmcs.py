"""Tuning a text tower to notice perturbed captions, on the example of the package; killed, it goes on to the same weights."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest
from extras import need

need("torch")
need("onnx")

import torch
from safetensors.torch import load_file

import caplens as package
from caplens.backbones.mini import mini_folder
from caplens.data import Sample, SampleFile, with_images
from caplens.errors import InputError
from caplens.training.recipes.prmcs import PrmcsRecipe, train_prmcs
from caplens.training.recipes.recipe import read_recipe
from caplens.training.recipes.tuning import Job

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
MODEL = "caplens-mini@1"
"""Smaller than the model of today, and faster to train."""
MINI = mini_folder(MODEL)


@pytest.fixture(scope="module")
def samples():
    return list(with_images(SampleFile(EXAMPLES / "good.jsonl"), EXAMPLES))


@pytest.fixture(scope="module")
def tuned(samples, tmp_path_factory):
    changes = ["train.steps=40", "train.photos=8", "train.keep=0.0", "train.average=0.5"]
    return train_prmcs(samples, Job(MODEL, tmp_path_factory.mktemp("run"), read_recipe(PrmcsRecipe, None, changes)))


def test_perturbations_are_noticed_and_the_image_tower_is_as_it_was(tuned, samples):
    before, after = (
        package.robustness(samples, ["clipscore"], ["jumble", "removal", "masking"], model=model, resamples=2).effects
        for model in (MODEL, str(tuned))
    )
    by = [{(effect.lang, effect.perturbation): effect for effect in effects} for effects in (before, after)]
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


def test_sentences_without_photos_are_learned_from_too(samples, tmp_path):
    """Two runs that differ in them alone end in different weights, and the settings of each say what it was given."""
    recipe = read_recipe(PrmcsRecipe, None, ["train.steps=2", "train.photos=6", "train.sentences=4"])
    more = [Sample("1", "two dogs play with a ball on the grass"), Sample("2", "ein Mann sitzt auf einer Bank", lang="de")]
    alone = train_prmcs(samples, Job(MODEL, tmp_path / "alone", recipe))
    both = train_prmcs(samples, Job(MODEL, tmp_path / "both", recipe), sentences=more)
    assert (both / "text.onnx").read_bytes() != (alone / "text.onnx").read_bytes()
    assert "sentences" in json.loads((both / "model.json").read_text(encoding="utf-8"))["tuned"]["given"]
    with pytest.raises(InputError, match="contain no caption"):
        train_prmcs(samples, Job(MODEL, tmp_path / "none", recipe), sentences=[Sample("1", " ")])


def test_old_weights_are_kept_by_a_share(samples, tmp_path):
    changes = ["train.steps=2", "train.photos=6"]
    made = {
        keep: train_prmcs(samples, Job(MODEL, tmp_path / keep, read_recipe(PrmcsRecipe, None, [*changes, f"train.keep={keep}"])))
        for keep in ("0.0", "1.0")
    }
    assert (made["1.0"] / "text.onnx").read_bytes() == (MINI / "text.onnx").read_bytes()
    assert (made["0.0"] / "text.onnx").read_bytes() != (MINI / "text.onnx").read_bytes()


COMMAND = [
    *("train", "prmcs", EXAMPLES / "good.jsonl", "--images", EXAMPLES, "--device", "cpu", "--model", MODEL),
    *("--set", "train.steps=30", "--set", "train.photos=6", "--set", "losses.gap=0.2"),
]
PROGRAM = """
import sys
from caplens.training.loop import fit
fit._CHECKPOINT_SECONDS = -1.0
from caplens.cli.main import main
main()
"""


def start(out: Path) -> subprocess.Popen:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, COMMAND), "--out", str(out)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def steps(out: Path) -> int:
    log = out / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.is_file() else []
    return max((json.loads(line)["step"] for line in lines if line.endswith("\n")), default=0)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path):
    whole = start(tmp_path / "whole")
    assert whole.wait(timeout=300) == 0, whole.stderr.read()
    killed, began = start(tmp_path / "killed"), time.monotonic()
    while steps(tmp_path / "killed") < 15:
        assert killed.poll() is None, killed.stderr.read()
        assert time.monotonic() - began < 200
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "tune.safetensors").exists()
    again = start(tmp_path / "killed")
    assert again.wait(timeout=300) == 0
    assert b"resuming at step" in again.stderr.read()
    one, other = (load_file(tmp_path / run / "tune.safetensors") for run in ("whole", "killed"))
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert (tmp_path / "whole/model/text.onnx").read_bytes() == (tmp_path / "killed/model/text.onnx").read_bytes()
    # Each step is in the log once.
    logged = [json.loads(line)["step"] for line in (tmp_path / "killed" / "log.jsonl").read_text().splitlines()]
    assert logged == sorted(set(logged))


@pytest.mark.slow
def test_a_full_disk_is_told(tmp_path):
    """A limit on the size of files stands for the disk."""
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))\nimport signal\n"
    program += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + PROGRAM
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, COMMAND), "--out", str(tmp_path / "full")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["run.json"] or not list(
        (tmp_path / "full").glob("*.safetensors")
    )
    assert not list((tmp_path / "full").glob("*.tmp")) + list((tmp_path / "full").glob(".*.tmp"))


@pytest.mark.slow
def test_two_processes_train_the_model_of_one(tmp_path):
    """The whole command, with its photos, captions and files."""
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    short = ["--set", "train.steps=3", "--set", "train.photos=7", "--set", "train.rate=0.0001", "--quiet"]
    for name, launcher in (("one", []), ("two", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"])):
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "caplens", *map(str, COMMAND), *short, "--out", str(tmp_path / name)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (load_file(tmp_path / name / "tune.safetensors") for name in ("one", "two"))
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, atol=1e-4, rtol=0)
    moved = max((one[key] - value).abs().max().item() for key, value in load_before().items())
    assert moved > 2e-4


def load_before() -> dict[str, torch.Tensor]:
    from torch import nn

    from caplens.training.loop.towers import open_towers

    return nn.ModuleDict(open_towers(MODEL, "cpu").networks).state_dict()

"""The same command on the same machine writes the same bytes, whatever order Python's sets have."""

import hashlib
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from extras import need

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
GOOD, BAD = EXAMPLES / "good.jsonl", EXAMPLES / "bad.jsonl"
COMMANDS = {
    "score": [
        "score",
        GOOD,
        "--images",
        EXAMPLES,
        "-r",
        GOOD,
        "-m",
        "clipscore,refclipscore,pacs,cider,rouge-l,bleu4",
        "-o",
        "out.json",
    ],
    "compare": ["compare", GOOD, BAD, "--images", EXAMPLES, "-r", GOOD, "-m", "clipscore,refpacs,cider", "-o", "out.json"],
    "robustness": ["robustness", GOOD, "--images", EXAMPLES, "-m", "clipscore", "-o", "out.json"],
    "perturb": ["perturb", GOOD, "out.jsonl"],
    "count-df": ["count-df", GOOD, "out.json", "--lang", "en"],
    "convert": ["convert", GOOD, "out.csv"],
    "report": ["demo", "-o", "out.html"],
}
SEEDS = ("0", "1", "2")


def _hashes(arguments, folder, outputs):
    """The hash of every output under each hash seed."""
    seen = []
    for seed in SEEDS:
        run = folder / seed
        run.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "CAPLENS_CACHE": str(run / "cache")}
        done = subprocess.run(
            [sys.executable, "-m", "caplens", *map(str, arguments)], cwd=run, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        seen.append([hashlib.sha256((run / name).read_bytes()).hexdigest() for name in outputs])
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_the_same_bytes_under_every_hash_seed(tmp_path, name):
    arguments = COMMANDS[name]
    output = next(str(argument) for argument in arguments if str(argument).startswith("out."))
    first, *others = _hashes(arguments, tmp_path, [output])
    assert all(other == first for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["mclipscore", "prmcs"])
def test_training_writes_the_same_bytes_under_every_hash_seed(tmp_path, recipe):
    need("torch")
    need("onnx")
    rated = tmp_path / "rated.jsonl"
    lines = GOOD.read_text(encoding="utf-8").splitlines()
    rated.write_text(
        "".join(f'{line[:-1]}, "ratings": [{number % 4}]}}\n' for number, line in enumerate(lines)), encoding="utf-8"
    )
    more = ["--ratings", rated, "--set", "train.rated=8"] if recipe == "mclipscore" else []
    arguments = ["train", recipe, GOOD, *more, "--images", EXAMPLES, "--device", "cpu", "--out", "run", "--set", "train.steps=6"]
    arguments += ["--set", "train.photos=4"]
    first, *others = _hashes(arguments, tmp_path, ["run/tune.safetensors", "run/model/text.onnx", "run/model/model.json"])
    assert all(other == first for other in others)

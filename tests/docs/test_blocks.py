"""Every block of code in the README and the guides runs, as it is written, in a folder that has what it names."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import stage
from extras import need

from caplens.plugins import find_plugins

for needed in ("torch", "onnx", "transformers", "open_clip", "diffusers", "pandas", "polars"):
    need(needed)

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SHORT = {
    "train mini": ["--small", "--set", "distil.steps=2", "--set", "align.steps=1", "--set", "text.steps=2"],
    "train mclipscore": ["--set", "train.steps=2"],
    "train pacs": ["--set", "train.steps=2", "--set", "train.photos=4", "--set", "validation.every=1"],
    "train prmcs": ["--set", "train.steps=2", "--set", "train.photos=4"],
    "train captioner": [
        "--set",
        "train.steps=2",
        "--set",
        "train.captions=4",
        "--set",
        "decoder.layers=1",
        "--set",
        "reward.steps=1",
    ],
    "train vit-mt5": ["--set", "train.steps=2", "--set", "train.captions=2"],
    "augment": ["--steps", "2", "--size", "16"],
}
"""Further options for what would take hours."""
ELSEWHERE = {"hf", "pip", "docker", ".venv/bin/pip", "python3", ".venv-test/bin/pip"}
"""Programs that need a network or a daemon; what they install and download is on the stage."""
OURS = re.compile(r"\.venv(-test)?/bin/(ruff|mypy|vulture|pytest|mkdocs)")
"""Checks that this test is a part of."""


class Block(NamedTuple):
    kind: str
    text: str
    line: int


def _blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [Block(found[1], found[2], text.count("\n", 0, found.start()) + 2) for found in BLOCK.finditer(text)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return stage.set_up(tmp_path_factory.mktemp("stage"))


@pytest.fixture
def staged(prepared, tmp_path, monkeypatch):
    folder = shutil.copytree(prepared, tmp_path / "stage")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.syspath_prepend(folder / "site-packages")
    find_plugins.cache_clear()
    yield folder
    find_plugins.cache_clear()


def test_every_block_says_what_it_is():
    kinds = {block.kind for path in PAGES for block in _blocks(path)}
    assert kinds <= {"sh", "python", "json", "toml", "yaml"}
    for path in PAGES:
        assert path.read_text(encoding="utf-8").count("```") == 2 * len(_blocks(path)), path.name


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.name == "training.md")) for path in PAGES if _blocks(path)],
    ids=lambda path: path.name,
)
def test_blocks_run(path, staged, caplens):
    for block in _blocks(path):
        where = f"{path.name}, line {block.line}"
        if block.kind == "json":
            for line in [block.text] if block.text.startswith("{\n") else block.text.splitlines():
                json.loads(line)
        elif block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "yaml":
            need("yaml").safe_load(block.text)
        elif block.kind == "python":
            exec(compile(block.text, where, "exec"), {"__name__": "__main__"})
        else:
            for line in block.text.splitlines():
                for command in _commands(line):
                    _run(command, where, caplens)


def _commands(line: str) -> list[list[str]]:
    """The commands of a line, without comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for token in lexer:
        if token == "&&":
            commands.append([])
        else:
            commands[-1].append(token)
    return [command for command in commands if command]


def _run(command: list[str], where: str, caplens) -> None:
    target = None
    if ">" in command:
        command, (target,) = command[: command.index(">")], command[command.index(">") + 1 :]
    program, *arguments = command
    if program.endswith("pip"):
        _check_extras(arguments)
    if program in ELSEWHERE or OURS.fullmatch(program):
        return
    name = next((name for name in SHORT if f"caplens {name} " in " ".join(command)), None)
    arguments += SHORT[name] if name else []
    if program == "torchrun":
        run = [sys.executable, "-m", "torch.distributed.run", *arguments, "--device", "cpu"]
        made = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        assert made.returncode == 0, f"{where}: {made.stderr}"
        return
    assert program in {"caplens", ".venv/bin/caplens"}, f"{where}: what is {program}?"
    if "--scores" in arguments:
        _scores_of_ones_own(Path(arguments[arguments.index("--scores") + 1]))
    said = caplens(*arguments)
    # 3: some of the small files lack what a command would like.
    assert said.status in {0, 3}, f"{where}: {shlex.join(command)}: {said.err}"
    if target is not None:
        Path(target).write_text(said.out, encoding="utf-8")


def _check_extras(arguments: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra in re.findall(r"\.\[([\w,]+)\]", " ".join(arguments)):
        assert set(extra.split(",")) <= extras.keys()
    assert "constraints.txt" not in arguments or (ROOT / "constraints.txt").is_file()


def _scores_of_ones_own(path: Path) -> None:
    """As a user would make them from the file that --export-items wrote."""
    items = [json.loads(line) for line in Path("items.jsonl").read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps({"id": item["id"], "score": n}) + "\n" for n, item in enumerate(items)), encoding="utf-8")

"""What people expect of every command: examples in its help, --json, --quiet, no colours where none are wanted."""

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import typer.main

from caplens.cli.main import build_app

EXAMPLES = Path(str(files("caplens").joinpath("examples")))


def _commands(group, name=()):
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*name, part))
        else:
            yield (*name, part), command


COMMANDS = dict(_commands(typer.main.get_command(build_app())))


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_it_has_json_quiet_and_examples(name, caplens):
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {"--json", "--quiet", "-q"} <= options
    said = caplens(*name, "--help")
    assert said.status == 0
    assert "Example" in said.out
    assert f"caplens {' '.join(name)}" in " ".join(said.out.replace("\n", " ").split())


@pytest.mark.slow
def test_json_is_all_that_goes_to_standard_output(caplens, tmp_path):
    captions = EXAMPLES / "good.jsonl"
    for arguments in (
        ("score", captions, "-m", "bleu1", "--resamples", 5),
        ("compare", captions, EXAMPLES / "bad.jsonl", "-m", "bleu1", "--resamples", 5),
        ("robustness", captions, "-m", "bleu1", "--perturbation", "jumble", "--resamples", 5),
        ("perturb", captions, tmp_path / "worse.jsonl"),
        ("convert", captions, tmp_path / "captions.csv"),
        ("count-df", captions, tmp_path / "df.json", "--lang", "en"),
        ("list", "metrics"),
        ("store", "info"),
        ("doctor",),
        ("demo", "-o", tmp_path / "demo.html"),
    ):
        said = caplens(*arguments, "--json")
        assert said.status == 0, said.err
        assert isinstance(json.loads(said.out), dict)
        assert "written to" not in said.err


def test_quiet_hides_remarks_and_keeps_warnings(caplens, write, tmp_path):
    path = write("captions.jsonl", [{"id": "1", "caption": "a dog", "references": ["a dog"]}, {"id": "2", "caption": ""}])
    said = caplens("score", path, "-m", "bleu1", "-o", tmp_path / "scores.csv", "--quiet")
    assert said.status == 3
    assert "written to" not in said.err
    assert "1 of 2 captions have no score" in said.err


def test_json_and_another_format_contradict_each_other(caplens):
    said = caplens("list", "metrics", "--json", "-f", "csv")
    assert said.status == 2
    assert "contradict" in said.err
    said = caplens("list", "metrics", "--json", "-o", "metrics.csv")
    assert said.status == 2
    assert "--json prints" in said.err
    assert not Path("metrics.csv").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["list", "metrics"], ["score", "--help"]])
def test_no_color_means_none_even_where_colours_are_forced(arguments):
    coloured = re.compile(rb"\x1b\[[\d;]*[34][0-7]m")
    for wanted in ("", "1"):
        environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        environment |= {"NO_COLOR": wanted} if wanted else {}
        made = subprocess.run([sys.executable, "-m", "caplens", *arguments], capture_output=True, env=environment, check=True)
        assert not (wanted and coloured.search(made.stdout + made.stderr))
        if not wanted and "--help" in arguments:
            assert coloured.search(made.stdout)


def test_shells_can_complete(caplens, monkeypatch):
    # Otherwise typer looks for the shell among the parents of this process, where there may be none.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_CAPLENS_COMPLETE" in caplens("--show-completion", "bash").out

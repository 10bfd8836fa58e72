"""The container and the GitHub action: what they run works, as far as that can be seen without Docker and GitHub."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from extras import need

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.fixture
def action():
    return need("yaml").safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture
def run(tmp_path):
    """Run the script of the action as its last step does: `run({"FAIL_UNDER": …})`; returns the finished process."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("caplens", "-m caplens "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    shutil.copytree(ROOT / "caplens" / "examples", tmp_path / "work")

    def run_script(inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "CAPTIONS": "good.jsonl", "METRICS": "length", "REPORT": "page.html", **inputs,
        }  # fmt: skip
        script = [str(shutil.which("bash")), str(ROOT / ".ci" / "score")]
        return subprocess.run(
            script, cwd=tmp_path / "work", env=environment, capture_output=True, text=True, check=False, encoding="utf-8"
        )

    return run_script


@pytest.mark.parametrize(("thresholds", "status"), [("length=2", 0), ("length=2\nlength=3@90%", 0), ("length=2\nlength=1000", 4)])
def test_the_action_ends_as_its_thresholds_say(run, tmp_path, thresholds, status):
    process = run({"FAIL_UNDER": thresholds})
    assert process.returncode == status, process.stderr
    assert (tmp_path / "work" / "page.html").is_file()
    assert "| length |" in (tmp_path / "summary").read_text(encoding="utf-8")
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text(encoding="utf-8").splitlines())
    assert outputs == {"scores": f"{tmp_path}/caplens-scores.json", "report": "page.html"}


def test_the_action_says_what_is_wrong_and_leaves_no_results_of_before(run, tmp_path):
    assert run({"FAIL_UNDER": "length=2"}).returncode == 0
    (tmp_path / "output").unlink()
    process = run({"FAIL_UNDER": "length=2", "CAPTIONS": "none.jsonl"})
    assert process.returncode == 2
    assert "none.jsonl: there is no such file" in process.stderr
    assert not (tmp_path / "output").exists()


def test_names_of_files_are_not_run(run, tmp_path):
    shutil.copy(tmp_path / "work" / "good.jsonl", tmp_path / "work" / "a $(touch owned) b.jsonl")
    assert run({"FAIL_UNDER": "length=2", "CAPTIONS": "a $(touch owned) b.jsonl"}).returncode == 0
    assert not (tmp_path / "work" / "owned").exists()


def test_every_input_of_the_action_reaches_its_script(action):
    last = action["runs"]["steps"][-1]
    named = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", " ".join(last["env"].values())))
    assert named == set(action["inputs"])
    # Inputs in the text of a script would be run as code.
    assert "${{" not in last["run"]
    script = (ROOT / ".ci" / "score").read_text(encoding="utf-8")
    assert all(name in script + last["run"] for name in last["env"])
    assert {match for output in action["outputs"].values() for match in re.findall(r"outputs\.(\w+)", output["value"])} == {
        "scores", "report",
    }  # fmt: skip


def test_the_container_installs_with_constraints_and_runs_as_a_user():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    install = next(line for line in lines if "pip install" in line)
    assert "-c /source/constraints.txt" in install
    extras = next(line for line in lines if line.startswith("ARG EXTRAS=")).partition("=")[2].split(",")
    assert set(extras) <= set(EXTRAS)
    assert "USER 1000" in lines
    assert lines[-2:] == ['ENTRYPOINT ["caplens"]', 'CMD ["--help"]']

"""The guides become a site without a broken link, and the programs for the commonest jobs run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import need

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning(tmp_path):
    need("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    made = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False
    )
    assert made.returncode == 0, made.stderr
    api = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert "Score captions." in api


@pytest.mark.parametrize("program", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_programs_run(program, tmp_path):
    made = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "clipscore" in made.stdout

"""What several rooms' tests need: the real data where it is at hand, the command, and captions made up on the spot."""

import json
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
from extras import need

from caplens.text.corpus import CorpusBuilder, TokenizedCorpus
from caplens.text.tokenizer import Tokenizer

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has a core. With more threads than cores PyTorch waits for itself, and is five times as slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def _let_torchvision_load() -> None:
    """Declare the operators that torchvision's Python code names, where its compiled part does not fit the installed torch.

    open_clip imports torchvision and uses nothing compiled of it. This has to come before anything imports torchvision.
    """
    if find_spec("torch") is None or (spec := find_spec("torchvision")) is None or spec.origin is None:
        return
    import torch

    try:
        for compiled in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(compiled)
        return
    except (OSError, RuntimeError):
        pass
    source = (Path(spec.origin).parent / "_meta_registrations.py").read_text(encoding="utf-8")
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in sorted(set(re.findall(r'register_fake\("torchvision::(\w+)"\)', source))):
        library.define(f"{name}(Tensor a) -> Tensor")
    globals()["_torchvision_operators"] = library


_let_torchvision_load()

GOLDEN = Path(__file__).parent / "golden"
_DATA = Path(os.environ.get("CAPLENS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def golden():
    """A file of published numbers."""
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


DATA_FIXTURES = {"coco_example", "benchmarks", "flickr8k", "photos"}
_skip_reasons: list[str] = []


def pytest_addoption(parser):
    parser.addoption("--require-data", action="store_true", help="Fail, instead of skipping, where a data set is missing.")


def pytest_configure(config):
    os.environ["CAPLENS_REQUIRE_DATA"] = "1" if config.getoption("--require-data") else ""


def pytest_collection_modifyitems(items):
    """Tests are marked by what they use: `data` for data sets, `browser` for Chromium."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & DATA_FIXTURES:
            item.add_marker(pytest.mark.data)
        if "browser" in fixtures:
            item.add_marker(pytest.mark.browser)


def pytest_runtest_logreport(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        _skip_reasons.append(report.longrepr[2].removeprefix("Skipped: "))


pytest_collectreport = pytest_runtest_logreport
"""Skips of whole files."""


def pytest_sessionfinish(session):
    """A skip must say what it needs, so that nothing is left out without a reason that can be removed."""
    unclear = [reason for reason in _skip_reasons if not reason.startswith("needs ")]
    if unclear and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nskipped without saying what is needed: {unclear}")


def missing_data(name: str) -> NoReturn:
    """Skip a test whose data is missing, or fail it where `--require-data` says so."""
    message = f"needs the data set {name} in $CAPLENS_DATA"
    if os.environ.get("CAPLENS_REQUIRE_DATA"):
        pytest.fail(message)
    pytest.skip(message)


def _data(*parts: str) -> Path:
    folder = _DATA.joinpath(*parts)
    if not folder.is_dir():
        missing_data("/".join(parts))
    return folder


@pytest.fixture(scope="session")
def coco_example() -> Path:
    return _data("benchmarks", "coco_fakecap")


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    return _data("benchmarks")


@pytest.fixture(scope="session")
def coco_photos() -> Path:
    """The folder of all data, where the photos of COCO are among them."""
    return _data("coco").parent


@pytest.fixture(scope="session")
def teachers() -> Path:
    return _data("teacher")


@pytest.fixture(scope="session")
def flickr8k() -> Path:
    return _data("flickr8k")


@pytest.fixture(scope="session")
def needs_java() -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java, which is not installed")


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def caplens(capsys, monkeypatch):
    """Run the command in this process: `caplens("score", path)`."""
    from caplens.cli.main import main

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["caplens", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
            sys.exit(0)
        out, err = capsys.readouterr()
        return Said(int(exit_.value.code or 0), out, err)

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file: `write("a.jsonl", rows)` for JSONL, or text or bytes as they are."""

    def write_file(name: str, content: object) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        elif isinstance(content, list) and name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write_file


class SpaceTokenizer(Tokenizer):
    """Tokens that are already apart."""

    name = "space"

    def __call__(self, text: str) -> list[str]:
        return text.split()


@pytest.fixture(scope="session")
def entries_of():
    """TokenizedCorpus from token strings: `entries_of(candidates, references)`."""

    def build(candidates: list[str], references: list[list[str]]) -> TokenizedCorpus:
        builder = CorpusBuilder(SpaceTokenizer())
        builder.add(candidates, references)
        return builder.build()

    return build


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Nothing that tests make reaches the user's cache."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory) -> Path:
    """A tiny CLIP."""
    need("transformers")
    import tiny_models

    return tiny_models.clip(tmp_path_factory.mktemp("hub") / "clip-vit-base-patch32")


@pytest.fixture(scope="session")
def browser():
    sync_api = need("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium, which is not on this machine")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()

"""Results of the example in the package, and a browser where there is one."""

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from extras import need

import caplens as package

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
METRICS = ["clipscore", "refclipscore", "cider"]


@pytest.fixture(scope="session")
def examples():
    return EXAMPLES


@pytest.fixture(scope="session")
def scores():
    return package.score(EXAMPLES / "good.jsonl", METRICS, images=EXAMPLES, resamples=50)


@pytest.fixture(scope="session")
def comparison():
    systems = {name: EXAMPLES / f"{name}.jsonl" for name in ("good", "bad")}
    return package.compare(systems, METRICS, images=EXAMPLES, resamples=50)


@pytest.fixture(scope="session")
def robustness():
    return package.robustness(EXAMPLES / "good.jsonl", ["clipscore"], images=EXAMPLES, resamples=20)


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

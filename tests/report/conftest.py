"""Results of the example in the package, and a browser where there is one."""

from importlib.resources import files
from pathlib import Path

import pytest

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

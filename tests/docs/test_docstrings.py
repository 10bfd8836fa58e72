"""The examples in docstrings run as they are written."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import caplens

PACKAGE = Path(caplens.__file__).parent
MODULES = sorted(
    ".".join(("caplens", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if re.search(r">>> (?!.*doctest: \+SKIP)", path.read_text(encoding="utf-8")) and path.name != "__init__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    module = importlib.import_module(name)
    failed, attempted = doctest.testmod(module, extraglobs={"caplens": caplens}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert attempted
    assert not failed

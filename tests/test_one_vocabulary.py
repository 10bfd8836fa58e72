"""Python and the command line are one: the same options, metrics and numbers, and no name that means two things."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections import defaultdict
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

import caplens as package
from caplens.cli.options import ModelOptions
from caplens.metrics.defaults import DEFAULT_METRICS
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.results.base import Result

PACKAGE = Path(package.__file__).parent
EXAMPLES = Path(str(files("caplens").joinpath("examples")))
GOOD, BAD = EXAMPLES / "good.jsonl", EXAMPLES / "bad.jsonl"


def _packages():
    rooms = [info.name for info in pkgutil.walk_packages(package.__path__, "caplens.") if info.ispkg]
    return [package, *map(importlib.import_module, rooms)]


def test_no_public_name_is_hidden_by_a_module():
    for info in pkgutil.walk_packages(package.__path__, "caplens."):
        needs_extra = info.name.startswith(
            ("caplens.captioners.hf", "caplens.captioners.vit_mt5_network", "caplens.human.", "caplens.training")
        )
        if not needs_extra and info.name != "caplens.__main__":
            importlib.import_module(info.name)
    for room in _packages():
        modules = {info.name for info in pkgutil.iter_modules(room.__path__)}
        for name in getattr(room, "__all__", []):
            assert not isinstance(getattr(room, name), ModuleType), f"{room.__name__}.{name} is a module"
            assert name not in modules, f"{room.__name__}.{name} is both a module and something else"
    assert inspect.isfunction(package.bench)


def test_every_public_name_has_a_docstring_and_functions_say_what_they_take():
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isfunction(thing):
            doc = inspect.getdoc(thing) or ""
            for part in ("Parameters", "Returns", "Raises", "Examples"):
                assert f"{part}\n---" in doc, f"{name} lacks {part}"


def test_public_signatures_do_not_say_any():
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isfunction(thing):
            assert not re.search(r"\bAny\b", str(inspect.signature(thing))), name
    for method in (Result.to_pandas, Result.to_polars, Result.save):
        assert not re.search(r"\bAny\b", str(inspect.signature(method))), method


def test_keywords_are_the_fields_of_the_options():
    assert set(ScoringKeywords.__annotations__) == {field.name for field in fields(ScoringOptions)}


def test_the_command_line_has_every_scoring_option():
    from caplens.cli.options import MetricOptions

    options = {field.name for group in (ModelOptions, MetricOptions) for field in fields(group)} - {"images", "metric"}
    renamed = {"no_store": "keep_store", "engine": "executor"}
    assert {renamed.get(name, name) for name in options} | {"lang"} == {f.name for f in fields(ScoringOptions)}


def test_the_command_line_sets_no_default_of_its_own():
    assert all(getattr(ModelOptions(), field.name) in (None, False) for field in fields(ModelOptions))
    from caplens.cli.options import MetricOptions

    assert ModelOptions().keywords(MetricOptions()) == {}


COMMANDS = {
    "score": (["score", GOOD], lambda: package.score(GOOD)),
    "score with images": (["score", GOOD, "--images", EXAMPLES], lambda: package.score(GOOD, images=EXAMPLES)),
    "compare": (["compare", GOOD, BAD], lambda: package.compare({"good": GOOD, "bad": BAD})),
    "compare with images": (
        ["compare", GOOD, BAD, "--images", EXAMPLES],
        lambda: package.compare({"good": GOOD, "bad": BAD}, images=EXAMPLES),
    ),
    "robustness": (
        ["robustness", GOOD, "--resamples", 10, "--perturbation", "jumble"],
        lambda: package.robustness(GOOD, perturbations=["jumble"], resamples=10),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_its_function_give_the_same_metrics_and_numbers(caplens, name):
    arguments, function = COMMANDS[name]
    document, expected = json.loads(caplens(*arguments, "--json").out), json.loads(json.dumps(function().to_dict()))
    assert {key: document[key] for key in expected} == expected


def test_bench_crossmodal_and_agreement_too(caplens, tmp_path, write):
    from stage import _crossmodal, _flickr8k

    (tmp_path / "photos").mkdir()
    flickr8k = _flickr8k(tmp_path / "flickr8k", tmp_path / "photos")
    _crossmodal(tmp_path)
    xm, systems = tmp_path / "xm3600", {name: tmp_path / f"{name}.jsonl" for name in "ab"}
    rated = write("rated.jsonl", [{"id": n, "caption": "a dog " * n, "references": ["a dog"], "ratings": [n]} for n in (1, 2, 3)])
    photos = flickr8k / "images"
    for arguments, result in (
        (["bench", "flickr8k-expert", "--data", flickr8k], package.bench("flickr8k-expert", flickr8k)),
        (
            ["bench", "flickr8k-expert", "--data", flickr8k, "--images", photos],
            package.bench("flickr8k-expert", flickr8k, images=photos),
        ),
        (["crossmodal", systems["a"], systems["b"], "--data", xm], package.crossmodal(systems, xm)),
        (["agreement", rated], package.agreement(rated)),
    ):
        document, expected = json.loads(caplens(*arguments, "--json").out), json.loads(json.dumps(result.to_dict()))
        assert {key: document[key] for key in expected} == expected, arguments


def test_every_task_of_the_defaults_is_a_function_and_a_command(caplens):
    from caplens.cli.main import COMMANDS as COMMAND_LINE

    assert set(DEFAULT_METRICS) <= set(package.__all__)
    assert set(DEFAULT_METRICS) <= set(COMMAND_LINE)


SCORE = ["score", GOOD, "--images", EXAMPLES, "--json"]
ROBUSTNESS = ["robustness", GOOD, "-m", "bleu1", "--json"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["df", GOOD, "{out}.json", "--lang", "en"], ["count-df", GOOD, "{out}.json", "--lang", "en"]),
        ([*ROBUSTNESS, "--kind", "jumble"], [*ROBUSTNESS, "--perturbation", "jumble"]),
        ([*SCORE, "--long", "cut"], [*SCORE, "--overlong", "truncate"]),
        ([*SCORE, "--long=split"], [*SCORE, "--overlong=split"]),
        (["train", "teacher", "--help"], ["train", "distill", "--help"]),
    ],
)
def test_old_names_work_and_say_what_to_use(caplens, tmp_path, old, new):
    first, second = (caplens(*(str(part).replace("{out}", str(tmp_path / "x")) for part in line)) for line in (old, new))
    assert (first.status, first.out) == (second.status, second.out)
    assert "is the old name of" in first.err
    assert ("--overlong truncate" in first.err) == ("cut" in old)
    assert "is the old name of" not in second.err


def test_python_users_never_read_of_command_line_options(write, tmp_path):
    with pytest.raises(package.InputError) as raised:
        package.score(write("a.jsonl", [{"id": "1", "caption": "a dog"}]))
    assert "--" not in str(raised.value)
    assert "references=FILE" in str(raised.value)


def test_messages_do_not_spell_options_by_hand():
    """In rooms above the command line, `option()` names an option for whoever reads."""
    spelled = re.compile(r"--[a-z]")
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] in ("cli", "errors.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                text = ast.unparse(node)
                allowed = text.replace("--local-dir", "").replace("--set", "").replace("count-df --lang {lang} --tokenizer", "")
                assert not spelled.search(allowed), f"{path.relative_to(PACKAGE)}: {text}"


def test_no_class_or_alias_is_defined_in_two_files():
    """Type variables are local, and three classes have the names that pycocoevalcap gives them."""
    names_of_pycocoevalcap = {"Cider", "Meteor", "PTBTokenizer", "Spice"}
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = ast.unparse(node.value)
                if re.fullmatch(r"_?[A-Z][a-zA-Z0-9]*[a-z][a-zA-Z0-9]*", node.targets[0].id) and "TypeVar(" not in value:
                    names = [node.targets[0].id]
            for name in names:
                if path.name != "coco.py" or name not in names_of_pycocoevalcap:
                    places[name].add(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_is_longer_than_400_lines():
    long = {str(p.relative_to(PACKAGE)): n for p in PACKAGE.rglob("*.py") if (n := len(p.read_text("utf-8").splitlines())) > 400}
    assert long == {}


def test_parallel_lists_as_in_torchmetrics_and_evaluate():
    from PIL import Image

    result = package.score(["a dog", "a cat"], ["bleu1"], references=[["a dog runs", "a dog"], "a cat"], resamples=0)
    assert result.ids == ["0", "1"]
    assert result["bleu1"].corpus == pytest.approx(1)
    red = Image.new("RGB", (32, 32), "red")
    assert package.score(["red", "red"], images=[red, red], resamples=0)["clipscore"].scored == 2
    with pytest.raises(package.InputError, match="2 captions and 1 references"):
        package.score(["a", "b"], ["bleu1"], references=[["a"]])
    with pytest.raises(package.InputError, match="belong to captions in a list"):
        package.score({"1": "a"}, ["bleu1"], references=[["a"]])


def test_metric_classes_are_importable():
    from caplens.metrics import Bleu4, Cider, ClipScore, RougeL

    assert [kind.name for kind in (Bleu4, Cider, ClipScore, RougeL)] == ["bleu4", "cider", "clipscore", "rouge-l"]
    with pytest.raises(ImportError):
        from caplens.metrics import Nothing  # noqa: F401

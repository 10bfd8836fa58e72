"""The house keeps its rules: data flows in one direction, and files are named for what they hold."""

import ast
from pathlib import Path

from extras import need

import caplens

PACKAGE = Path(caplens.__file__).parent
ROOT = Path(__file__).parents[1]
ROOMS = [
    "data", "text", "stats", "results", "backbones", "embed", "metrics", "comparison", "benchmarks", "perturbation",
    "translation", "captioners", "calibration", "partitions", "training", "human", "report", "api", "adapters", "cli",
]  # fmt: skip
"""In the order in which data flows; those that do not exist yet are in the design."""
BESIDE = {
    ("adapters", "cli"),
    ("cli", "adapters"),
    ("captioners", "perturbation"),
    ("report", "training"),
    ("report", "captioners"),
}
"""Rooms that know nothing of each other, though the list has one after the other."""
FOUNDATION = {"arrays", "errors", "libraries", "plugins", "programs", "progress", "terminal", "version"}
FACADE = {"__init__", "__main__"}


def _imported(path: Path) -> set[str]:
    """First part below `caplens` of everything that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}: relative import")
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "caplens" else [node.module]
        found |= {name.split(".")[1] for name in names if name.startswith("caplens.")}
    return found


def test_every_folder_is_a_room_of_the_design():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders <= set(ROOMS)


def test_a_room_imports_only_from_rooms_above_it():
    for room in ROOMS:
        allowed = {*ROOMS[: ROOMS.index(room) + 1], *FOUNDATION} - {other for one, other in BESIDE if one == room}
        for path in (PACKAGE / room).rglob("*.py"):
            assert _imported(path) <= allowed, f"{path.relative_to(PACKAGE)} reaches below its room"


def test_the_foundation_imports_no_room():
    for path in PACKAGE.glob("*.py"):
        if path.stem not in FACADE:
            assert _imported(path) <= FOUNDATION, path.name


def test_no_file_is_named_for_nothing():
    vague = {"utils", "helpers", "common", "misc"}
    assert not vague & {path.stem for path in PACKAGE.rglob("*.py")}


def test_nothing_is_unpickled():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        names |= {keyword.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords}
        assert not names & {"pickle", "cPickle", "dill", "joblib", "shelve", "allow_pickle"}, path


def test_the_readme_and_ci_run_the_same_test_command():
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    command = next(line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if "venv .venv-test" in line)
    assert command in commands
    assert command in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_there_is_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {caplens.__version__}\n" in citation
    assert f"## {caplens.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_one_place_opens_models_of_other_libraries():
    """So that code which a model brings is never run unasked."""
    openers = (".from_pretrained(", ".from_config(", "SentenceTransformer(")
    for path in PACKAGE.rglob("*.py"):
        if path.name != "pretrained.py":
            text = (
                path.read_text(encoding="utf-8")
                .replace("class SentenceTransformer(", "")
                .replace("return SentenceTransformer(", "")
            )
            assert not [opener for opener in openers if opener in text], path


def test_one_place_opens_images():
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).as_posix() != "embed/images.py":
            assert "Image.open(" not in path.read_text(encoding="utf-8"), path


def test_no_function_has_more_than_15_paths():
    complexity = need("radon.complexity")
    root = Path(__file__).parents[1]
    for path in (file for folder in ("caplens", "benchmarks", "examples", "tests") for file in (root / folder).rglob("*.py")):
        for block in complexity.cc_visit(path.read_text(encoding="utf-8")):
            assert block.complexity <= 15, f"{path.relative_to(root)}: {block.fullname}"

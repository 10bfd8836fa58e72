"""The house keeps its rules: data flows in one direction, and files are named for what they hold."""

import ast
from pathlib import Path

import caplens

PACKAGE = Path(caplens.__file__).parent
ROOMS = [
    "data", "text", "backbones", "embed", "metrics", "stats", "bench", "perturb", "translate", "train", "human", "report",
    "adapters", "cli",
]  # fmt: skip
FOUNDATION = {"errors", "libraries", "progress", "version"}
FACADE = {"api", "__init__", "__main__"}


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
        allowed = {*ROOMS[: ROOMS.index(room) + 1], *FOUNDATION} | ({"api"} if room in {"adapters", "cli"} else set())
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
    root = PACKAGE.parent
    command = (root / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]
    assert command in (root / "README.md").read_text(encoding="utf-8")

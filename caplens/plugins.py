"""What other packages bring: metrics, benchmarks, tokenizers, model families and captioners, found through entry points.

A package announces them in its own `pyproject.toml`:

    [project.entry-points."caplens.metrics"]
    my-metric = "my_package.metrics:MyMetric"
"""

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from caplens.errors import CaplensError, InputError, reason

GROUPS = ("caplens.metrics", "caplens.benchmarks", "caplens.tokenizers", "caplens.backbones", "caplens.captioners")


@cache
def find_plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two packages with the same name the first found counts."""
    plugins: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        plugins.setdefault(point.name, point)
    return plugins


def load_plugin(group: str, name: str) -> Any:
    """The object that an entry point names."""
    point = find_plugins(group)[name]
    try:
        return point.load()
    except Exception as error:
        # Another package's code may raise anything while it is imported.
        package = point.dist.name if point.dist is not None else point.value
        raise CaplensError(
            f"{name!r} of the package {package} cannot be loaded ({type(error).__name__}: {reason(error)})."
        ) from None


def import_object(path: str) -> Any:
    """`package.module:name` -> the object of that name; the current folder is searched last."""
    module, _, name = path.partition(":")
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        # The module's code may raise anything while it is imported.
        raise InputError(f"{path!r} cannot be imported ({reason(error)}). Write it as package.module:name.") from None
    finally:
        sys.path[:] = before

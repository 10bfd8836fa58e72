"""Optional libraries, imported when first used."""

import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from caplens.errors import CaplensError, MissingExtraError, reason

_CONSTRAINTS = "constraints.txt"


def require(module: str, feature: str, extra: str) -> Any:
    """The module, or one clear sentence on how to get it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except Exception as error:
        # Compiled libraries whose versions do not match fail to load with errors of many types.
        if isinstance(error, ImportError) and find_spec(package) is None:
            raise MissingExtraError(feature, package, install_command(extra)) from None
        raise CaplensError(
            f"{feature} needs {package}, which is installed but does not load ({reason(error)}). Its version does not match"
            " those of the libraries that it uses: reinstall them together."
        ) from None


def install_command(extra: str) -> str:
    """What installs an extra in tested versions: without these, pip may take gigabytes of CUDA with PyTorch."""
    package = Path(__file__).parent
    # Inside the installed package, or beside it in a clone.
    file = next((path for path in (package / _CONSTRAINTS, package.parent / _CONSTRAINTS) if path.is_file()), None)
    constraints = "" if file is None else f"-c {shlex.quote(str(file))} "
    return f"pip install {constraints}'caplens[{extra}]'"

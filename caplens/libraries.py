"""Optional libraries, imported when first used."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from caplens.errors import CaplensError, MissingExtraError, reason


def require(module: str, feature: str, extra: str) -> Any:
    """The module, or one clear sentence on how to get it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except Exception as error:
        # Compiled libraries whose versions do not match fail to load with errors of many types.
        if isinstance(error, ImportError) and find_spec(package) is None:
            raise MissingExtraError(feature, package, f"pip install 'caplens[{extra}]'") from None
        raise CaplensError(
            f"{feature} needs {package}, which is installed but does not load ({reason(error)}). Its version does not match"
            " those of the libraries that it uses: reinstall them together."
        ) from None

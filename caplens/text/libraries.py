"""Optional libraries, imported when first used."""

from importlib import import_module
from typing import Any

from caplens.errors import MissingExtraError


def require(module: str, tokenizer: str, extra: str) -> Any:
    """The module, or one clear sentence on how to get it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(f"The tokenizer {tokenizer!r}", package, f"pip install 'caplens[{extra}]'") from None
